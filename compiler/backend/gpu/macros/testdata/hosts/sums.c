THUNK(sum_shared, a[0], a[1])
THUNK(sum_shuffled, a[0], a[1])
THUNK(sum_atomic, a[0], a[1], a[2])
int main(int argc, char **argv) {
  enum { rows = 9 };
  float *x = numbers(256 * rows), *y = room(rows * 128 * sizeof *y), want[rows] = {0}, spread[rows * 128], full[rows];
  int32_t *count = room(rows * sizeof *count);
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < 256; k++) want[r] += x[r * 256 + k];
  for (int k = 0; k < rows * 128; k++) spread[k] = want[k / 128];
  int wrong = 0;
  LAUNCH(sum_shared, 128, rows, argc, (OUT(y, rows)), x, y);
  wrong |= differs("sum_shared", y, want, rows, 1e-5);
  LAUNCH(sum_shuffled, 128, rows, argc, (OUT(y, rows * 128)), x, y);
  wrong |= differs("sum_shuffled", y, spread, rows * 128, 1e-5);
  memset(y, 0, rows * sizeof *y);
  LAUNCH(sum_atomic, 64, 4 * rows, argc, (OUT(y, rows), OUT(count, rows)), x, y, count);
  wrong |= differs("sum_atomic", y, want, rows, 1e-5);
  for (int r = 0; r < rows; r++) full[r] = 8, y[r] = (float)count[r];
  return wrong | differs("count", y, full, rows, 0);
}
