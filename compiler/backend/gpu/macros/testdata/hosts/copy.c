THUNK(copy, a[0], a[1])
int main(int argc, char **argv) {
  float *from = numbers(1000), *to = room(1000 * sizeof *to);
  LAUNCH(copy, 64, 4, argc, (OUT(to, 1000)), from, to);
  return differs("copy", to, from, 1000, 0);
}
