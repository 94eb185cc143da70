THUNK(bulk, a[0], a[1])
int main(int argc, char **argv) {
  float *x = numbers(9 * 256), *y = room(256 * sizeof *y);
  double *want = room(256 * sizeof *want);
  for (int r = 0; r < 9; r++)
    for (int c = 0; c < 256; c++) want[c] += x[r * 256 + c];
  LAUNCH(bulk, 128, 2, argc, (OUT(y, 256)), x, y);
  return differs_from("bulk", y, want, 256, 1e-6);
}
