THUNK(math_floats, a[0], a[1])
THUNK(math_doubles, a[0], a[1])
int main(int argc, char **argv) {
  float *x = numbers(32), *y = room(4 * 32 * sizeof *y);
  double floats[4 * 32], doubles[4 * 32];
  for (int k = 0; k < 32; k++) {
    double v = x[k];
    floats[k] = exp(v), floats[32 + k] = log(v + 2), floats[64 + k] = tanh(v) + erf(v), floats[96 + k] = sqrt(v + 1) + floor(v);
    doubles[k] = sin(x[k] * 10) + cos(x[k] * 1e30f), doubles[32 + k] = pow(x[k] + 2, v), doubles[64 + k] = atan(v) + asinh(v);
    doubles[96 + k] = erf(v) + fmod(v, 0.1);
  }
  LAUNCH(math_floats, 32, 1, argc, (OUT(y, 4 * 32)), x, y);
  int wrong = differs_from("math_floats", y, floats, 4 * 32, 1e-6);
  LAUNCH(math_doubles, 32, 1, argc, (OUT(y, 4 * 32)), x, y);
  return wrong | differs_from("math_doubles", y, doubles, 4 * 32, 1e-6);
}
