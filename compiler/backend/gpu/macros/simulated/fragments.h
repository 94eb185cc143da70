/* Matrices spread over the registers of a warp, as the instructions ldmatrix and mma of NVIDIA's GPUs have them (PTX
 * ISA, "Matrix fragments for mma.m16n8k16" and others). Sums inside are in float32; no card's order is promised. */

SIM_INLINE float sim_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

SIM_INLINE float sim_bf16(uint32_t bits) { return sim_float_of(bits << 16); }

/* The hardware leaves out the last 13 bits. */
SIM_INLINE float sim_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return sim_float_of(bits & 0xffffe000);
}

/* The sum of a number and a product, both rounded. */
SIM_INLINE float sim_multiply_add(float a, float b, float c) { return c + a * b; }

/* The elements of a row of so many bytes, at an index of a shared array that a lane gives. */
SIM_STATIC void *sim_read_row(struct sim_thread *sim, struct sim_warp *w, int lane, int bytes) {
  const struct sim_array *s = w->lane[lane].a;
  int64_t i = sim_read_shared(sim, s, w->lane[lane].argument, bytes / s->element_bytes, w->line);
  sim_check_aligned(sim, s, i, bytes, w->line);
  return s->memory + i * s->element_bytes;
}

/* Rounds to the nearest number of tf32, ties away from zero, as cvt.rna does. */
SIM_INLINE uint32_t sim_round_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}

/* What rounding leaves, rounded. */
SIM_INLINE uint32_t sim_tf32_rest(float x) { return sim_round_tf32(x - sim_float_of(sim_round_tf32(x))); }

/* Rounds to the nearest bfloat16, ties to even. */
SIM_INLINE uint32_t sim_round_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
