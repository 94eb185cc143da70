THUNK(tensor, a[0], a[1], a[2])
int main(int argc, char **argv) {
  enum { m = 100, n = 72, depth = 96 };
  tilth_bfloat16 *a = bfloats(m * depth), *b = bfloats(n * depth);
  float *c = room(m * n * sizeof *c);
  double *want = room(m * n * sizeof *want);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < depth; k++) want[i * n + j] += (double)bfloat(a[i * depth + k]) * bfloat(b[j * depth + k]);
  LAUNCH(tensor, 128, 4, argc, (OUT(c, m * n)), a, b, c);
  return differs_from("tensor", c, want, m * n, 1e-5);
}
