/* Runs a model on inputs that the test makes as well, and prints its outputs' bits. INPUTS, OUTPUTS and the model's
 * header are the test's. */
#include "start.h"
#include "run.h"

static void word(uint32_t x) {
  char text[10];
  for (int k = 0; k < 8; k++) text[k] = "0123456789abcdef"[x >> (28 - 4 * k) & 15];
  text[8] = '\n', text[9] = 0;
  print(text);
}

int main(void) {
  fill();
  const uint32_t begin = ticks();
  run();
  const uint32_t end = ticks();
  print("instructions ");
  word(end - begin);
  for (uint32_t k = 0; k < OUTPUT_BYTES; k += 4) {
    uint32_t x = 0;
    for (uint32_t i = 0; i < 4 && k + i < OUTPUT_BYTES; i++) x |= (uint32_t)output()[k + i] << 8 * i;
    word(x);
  }
  return 0;
}
