/* A model of the instructions for tiles, for machines without them: what "Intel 64 and IA-32 Architectures Software
 * Developer's Manual" says of TILEZERO, TILELOADD, TILESTORED, TDPBSSD and its kin, TDPBF16PS and TDPFP16PS, in plain
 * C. It stops the program where the processor would raise an exception. Rows are copied from and to memory, so that
 * sanitizers see accesses out of bounds. */
#ifndef TILTH_TILES
#define TILTH_TILES
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_TILES = 8, MODEL_ROWS = 16, MODEL_ROW_BYTES = 64 };

/* What LDTILECFG reads. */
struct model_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

static struct {
  struct model_config config;
  uint8_t data[MODEL_TILES][MODEL_ROWS][MODEL_ROW_BYTES];
} model;

static void model_expect(int holds, const char *what, int tile) {
  if (holds) return;
  fprintf(stderr, "tile %d: %s\n", tile, what);
  abort();
}

static void model_configure(const void *memory) {
  struct model_config c;
  memcpy(&c, memory, sizeof c);
  model_expect(sizeof c == 64 && c.palette == 1 && c.start_row == 0, "the palette is none", -1);
  for (int k = 0; k < 14; k++) model_expect(c.reserved[k] == 0, "reserved bytes of a configuration are set", k);
  for (int k = 0; k < 16; k++) {
    int within = k < MODEL_TILES ? c.rows[k] <= MODEL_ROWS && c.row_bytes[k] <= MODEL_ROW_BYTES : !c.rows[k] && !c.row_bytes[k];
    model_expect(within && !c.rows[k] == !c.row_bytes[k], "it has no such rows", k);
  }
  model.config = c;
  memset(model.data, 0, sizeof model.data);
}

static void model_valid(int tile) {
  model_expect(tile >= 0 && tile < MODEL_TILES, "there is none", tile);
  model_expect(model.config.palette == 1 && model.config.rows[tile] > 0, "it is not configured", tile);
}

static int model_rows(int tile) { return model.config.rows[tile]; }
static int model_row_bytes(int tile) { return model.config.row_bytes[tile]; }

static void tilth_tile_zero(int tile) {
  model_valid(tile);
  memset(model.data[tile], 0, sizeof model.data[tile]);
}

static void tilth_tile_load(int tile, const void *from, int64_t bytes) {
  tilth_tile_zero(tile);
  for (int row = 0; row < model_rows(tile); row++) memcpy(model.data[tile][row], (const char *)from + row * bytes, model_row_bytes(tile));
}

static void tilth_tile_store(int tile, void *to, int64_t bytes) {
  model_valid(tile);
  for (int row = 0; row < model_rows(tile); row++) memcpy((char *)to + row * bytes, model.data[tile][row], model_row_bytes(tile));
}

static void model_shapes(int sum, int a, int b) {
  model_valid(sum), model_valid(a), model_valid(b);
  model_expect(sum != a && sum != b && a != b, "it is two operands of one product", sum);
  model_expect(model_rows(a) == model_rows(sum) && model_row_bytes(b) == model_row_bytes(sum) && model_row_bytes(a) / 4 == model_rows(b),
               "rows and columns of operands do not fit its own", sum);
}

static int32_t model_byte(int tile, int row, int k, int is_signed) {
  uint8_t x = model.data[tile][row][k];
  return is_signed ? (int8_t)x : x;
}

static void model_bytes(int sum, int a, int b, int signed_a, int signed_b) {
  model_shapes(sum, a, b);
  for (int m = 0; m < model_rows(sum); m++)
    for (int k = 0; k < model_row_bytes(a) / 4; k++)
      for (int n = 0; n < model_row_bytes(sum) / 4; n++) {
        uint32_t total;
        memcpy(&total, &model.data[sum][m][4 * n], 4);
        for (int t = 0; t < 4; t++) total += (uint32_t)(model_byte(a, m, 4 * k + t, signed_a) * model_byte(b, k, 4 * n + t, signed_b));
        memcpy(&model.data[sum][m][4 * n], &total, 4);
      }
}

static uint16_t model_half(int tile, int row, int k) {
  uint16_t x;
  memcpy(&x, &model.data[tile][row][2 * k], 2);
  return x;
}

/* Denormal numbers are zero, whether they are read or computed. */
static float model_flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

static float model_bf16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, 4);
  return model_flushed(x);
}

static float model_fp16(uint16_t half) {
  int exponent = half >> 10 & 31, fraction = half & 1023;
  float x = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
  return half >> 15 ? -x : x;
}

static void model_halves(int sum, int a, int b, float (*wide)(uint16_t)) {
  model_shapes(sum, a, b);
  for (int m = 0; m < model_rows(sum); m++)
    for (int n = 0; n < model_row_bytes(sum) / 4; n++) {
      float even = 0, odd = 0, total;
      for (int k = 0; k < model_row_bytes(a) / 4; k++) {
        even = model_flushed(fmaf(wide(model_half(a, m, 2 * k)), wide(model_half(b, k, 2 * n)), even));
        odd = model_flushed(fmaf(wide(model_half(a, m, 2 * k + 1)), wide(model_half(b, k, 2 * n + 1)), odd));
      }
      memcpy(&total, &model.data[sum][m][4 * n], 4);
      total = model_flushed(model_flushed(total) + model_flushed(even + odd));
      memcpy(&model.data[sum][m][4 * n], &total, 4);
    }
}

static void model_tdpbssd(int sum, int a, int b) { model_bytes(sum, a, b, 1, 1); }
static void model_tdpbsud(int sum, int a, int b) { model_bytes(sum, a, b, 1, 0); }
static void model_tdpbusd(int sum, int a, int b) { model_bytes(sum, a, b, 0, 1); }
static void model_tdpbuud(int sum, int a, int b) { model_bytes(sum, a, b, 0, 0); }
static void model_tdpbf16ps(int sum, int a, int b) { model_halves(sum, a, b, model_bf16); }
static void model_tdpfp16ps(int sum, int a, int b) { model_halves(sum, a, b, model_fp16); }
#define tilth_tile_product(name, sum, a, b) model_##name(sum, a, b)

/* As packages configure tiles when they start. */
__attribute__((constructor)) static void model_start(void) {
  struct model_config c = {.palette = 1};
  for (int k = 0; k < MODEL_TILES; k++) c.rows[k] = MODEL_ROWS, c.row_bytes[k] = MODEL_ROW_BYTES;
  model_configure(&c);
}
#endif
