/* Functions of mathematics, one after the other: of floats from formulas for floats, of floats by way of doubles, and
 * of doubles. */
TILTH_KERNEL(math_floats, 32)(GLOBAL const float *restrict x, GLOBAL float *restrict y) {
  GLOBAL_ARRAY(x, 32);
  GLOBAL_ARRAY(y, 4 * 32);
  float v = LOAD(x, TID);
  STORE(y, TID, tilth_expf(v));
  STORE(y, 32 + TID, tilth_logf(v + 2));
  STORE(y, 64 + TID, tilth_tanhf(v) + tilth_erff(v));
  STORE(y, 96 + TID, tilth_sqrtf(v + 1) + tilth_floorf(v));
}

TILTH_KERNEL(math_doubles, 32)(GLOBAL const float *restrict x, GLOBAL float *restrict y) {
  GLOBAL_ARRAY(x, 32);
  GLOBAL_ARRAY(y, 4 * 32);
  float v = LOAD(x, TID);
  STORE(y, TID, tilth_sinf(v * 10) + tilth_cosf(v * 1e30f));
  STORE(y, 32 + TID, tilth_powf(v + 2, v));
  STORE(y, 64 + TID, tilth_atanf(v) + tilth_asinhf(v));
  STORE(y, 96 + TID, (float)(tilth_erf(v) + tilth_fmod(v, 0.1)));
}
