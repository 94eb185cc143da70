THUNK(turned, a[0], a[1], *(struct sim_map *)a[2])
THUNK(windows, a[0], a[1], *(struct sim_map *)a[2])
THUNK(many, a[0], a[1], *(struct sim_map *)a[2], *(struct sim_map *)a[3])

static float element(const float *x, int row, int column) {
  return row < 40 && column >= 0 && column < 72 ? x[row * 72 + column] : 0;
}

static int test_turned(int workers) {
  float *x = numbers(40 * 72), *y = room(96 * 48 * sizeof *y), *want = room(96 * 48 * sizeof *want);
  struct sim_map map = {
      .address = (uintptr_t)x, .kind = SIM_MAP, .dimensions = 2, .element_bytes = 4, .panel = 128,
      .last = {71, 39}, .strides = {0, 72 * 4}, .box = {32, 16}};
  for (int c = 0; c < 96; c++)
    for (int r = 0; r < 48; r++) want[c * 48 + r] = element(x, r, c) - element(x, r, c / 32 * 32 - 32 + c % 32);
  LAUNCH(turned, 128, 9, workers, (OUT(y, 96 * 48)), x, y, &map);
  return differs("turned", y, want, 96 * 48, 0);
}

static int test_windows(int workers) {
  uint16_t *x = room(2 * 5 * 6 * 80 * sizeof *x), *y = room(2 * 16 * 128 * sizeof *y);
  for (int k = 0; k < 2 * 5 * 6 * 80; k++) x[k] = (uint16_t)(draw() | 1);
  struct sim_map map = {
      .address = (uintptr_t)x, .kind = SIM_MAP, .dimensions = 4, .element_bytes = 2, .panel = 128,
      .last = {79, 5, 4, 1}, .strides = {0, 80 * 2, 6 * 80 * 2, 5 * 6 * 80 * 2}, .box = {64, 4, 4, 1}};
  LAUNCH(windows, 64, 2, workers, (OUT(y, 2 * 16 * 128)), x, y, &map);
  for (int k = 0; k < 2 * 16 * 128; k++) {
    int channel = k % 128, column = k / 128 % 4 - 1, row = k / 512 % 4 + 2, image = k / 2048;
    int inside = channel < 80 && column >= 0 && column < 6 && row >= 0 && row < 5;
    int want = inside ? x[((image * 5 + row) * 6 + column) * 80 + channel] : 0;
    if (y[k] != want) return printf("windows[%d] is %d, want %d\n", k, y[k], want), 1;
  }
  return 0;
}

static int test_many(int workers) {
  float *x = numbers(128), *y = room(128 * sizeof *y), *want = room(128 * sizeof *want);
  struct sim_map three = {
      .address = (uintptr_t)x, .kind = SIM_MAP, .dimensions = 3, .element_bytes = 4, .panel = 32,
      .last = {7, 3, 3}, .strides = {0, 32, 128}, .box = {8, 2, 4}};
  struct sim_map five = {
      .address = (uintptr_t)x, .kind = SIM_MAP, .dimensions = 5, .element_bytes = 4, .panel = 32,
      .last = {7, 1, 1, 1, 1}, .strides = {0, 32, 64, 128, 256}, .box = {8, 2, 1, 2, 2}};
  for (int k = 0; k < 64; k++) {
    int c = k % 8, r = k / 8;
    want[k] = x[(r / 2 * 4 + 1 + r % 2) * 8 + c];
    want[64 + k] = r < 4 ? x[(8 + r / 2 * 4 + 2 + r % 2) * 8 + c] : 0;
  }
  LAUNCH(many, 32, 1, workers, (OUT(y, 128)), x, y, &three, &five);
  return differs("many", y, want, 128, 0);
}

int main(int argc, char **argv) { return test_turned(argc) || test_windows(argc) || test_many(argc); }
