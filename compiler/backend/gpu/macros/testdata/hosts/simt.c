THUNK(simt, a[0], a[1], a[2])
int main(int argc, char **argv) {
  float *a = numbers(64 * 48), *b = numbers(48 * 96), *c = room(64 * 96 * sizeof *c);
  double *want = room(64 * 96 * sizeof *want);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 96; j++)
      for (int k = 0; k < 48; k++) want[i * 96 + j] += (double)a[i * 48 + k] * b[k * 96 + j];
  LAUNCH(simt, 64, 6, argc, (OUT(c, 64 * 96)), a, b, c);
  return differs_from("simt", c, want, 64 * 96, 1e-5);
}
