/* Matrices spread over the registers of a warp, as the instructions ldmatrix and mma of NVIDIA's GPUs have them (PTX
 * ISA, "Matrix fragments for mma.m16n8k16" and others). Sums inside are in float32; no card's order is promised. */

SIM_INLINE float sim_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

SIM_INLINE float sim_bf16(uint32_t bits) { return sim_float_of(bits << 16); }

SIM_INLINE float sim_f16(uint32_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  float x = exponent == 31 ? sim_float_of(0x7f800000 | fraction << 13)
            : exponent     ? sim_float_of((exponent + 112) << 23 | fraction << 13)
                           : (float)fraction * 0x1p-24f;
  return bits & 0x8000 ? -x : x;
}

/* The hardware leaves out the last 13 bits. */
SIM_INLINE float sim_tf32(uint32_t bits) { return sim_float_of(bits & 0xffffe000); }

/* Each group of eight lanes names the rows of a matrix of 8x8 elements of 16 bits; a lane gets two neighbours of
 * each. */
SIM_INLINE void sim_ldmatrix(struct sim_thread *first, struct sim_warp *w, int matrices, int transposed) {
  uint16_t m[4][8][8];
  for (int l = 0; l < 8 * matrices; l++) {
    const struct sim_array *s = w->lane[l].a;
    int64_t i = w->lane[l].argument;
    i = sim_read_shared(first + l, s, i, 16 / s->element_bytes, w->line);
    sim_check_aligned(first + l, s, i, 16, w->line);
    memcpy(m[l / 8][l % 8], s->memory + i * s->element_bytes, 16);
  }
  for (int l = 0; l < SIM_WARP; l++)
    for (int k = 0; k < matrices; k++) {
      int row = l / 4, column = l % 4 * 2;
      uint32_t low = transposed ? m[k][column][row] : m[k][row][column];
      uint32_t high = transposed ? m[k][column + 1][row] : m[k][row][column + 1];
      ((uint32_t *)w->lane[l].result)[k] = low | high << 16;
    }
}

SIM_STATIC void sim_ldmatrix_x1(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 1, 0); }
SIM_STATIC void sim_ldmatrix_x2(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 2, 0); }
SIM_STATIC void sim_ldmatrix_x4(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 4, 0); }
SIM_STATIC void sim_ldmatrix_x1_trans(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 1, 1); }
SIM_STATIC void sim_ldmatrix_x2_trans(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 2, 1); }
SIM_STATIC void sim_ldmatrix_x4_trans(struct sim_thread *first, struct sim_warp *w) { sim_ldmatrix(first, w, 4, 1); }

/* A product of 16 x k and k x 8 elements, of which a register holds n neighbours along k: the registers of a lane
 * have rows l / 4 and l / 4 + 8 of the first, column l % 4 of n neighbours, then the same of the second half of k.
 * ELEMENT_A(bits, e) is the e-th element of a register of the first, ELEMENT_B of the second. */
#define SIM_MMA(name, sum, per_register, ELEMENT_A, ELEMENT_B) \
  SIM_STATIC void name(struct sim_thread *first, struct sim_warp *w) { \
    enum { n = per_register, depth = 8 * n }; \
    (void)first; \
    sum a[16][depth], b[depth][8], d[16][8]; \
    for (int l = 0; l < SIM_WARP; l++) { \
      const uint32_t *ra = w->lane[l].a, *rb = w->lane[l].b; \
      const sum *rd = w->lane[l].result; \
      for (int e = 0; e < n; e++) \
        for (int half = 0; half < 2; half++) { \
          int k = half * 4 * n + l % 4 * n + e; \
          a[l / 4][k] = ELEMENT_A(ra[2 * half], e), a[l / 4 + 8][k] = ELEMENT_A(ra[2 * half + 1], e); \
          b[k][l / 4] = ELEMENT_B(rb[half], e); \
        } \
      int64_t apart = w->lane[l].argument; \
      for (int e = 0; e < 4; e++) d[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2] = rd[e / 2 * apart + e % 2]; \
    } \
    for (int i = 0; i < 16; i++) \
      for (int k = 0; k < depth; k++) \
        for (int j = 0; j < 8; j++) d[i][j] += a[i][k] * b[k][j]; \
    for (int l = 0; l < SIM_WARP; l++) \
      for (int e = 0; e < 4; e++) \
        ((sum *)w->lane[l].result)[e / 2 * w->lane[l].argument + e % 2] = d[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2]; \
  }

#define SIM_BF16(bits, e) sim_bf16((bits) >> (16 * (e)) & 0xffff)
#define SIM_F16(bits, e) sim_f16((bits) >> (16 * (e)) & 0xffff)
#define SIM_TF32(bits, e) sim_tf32(bits)
#define SIM_S8(bits, e) ((int8_t)((bits) >> (8 * (e))))
#define SIM_U8(bits, e) ((uint8_t)((bits) >> (8 * (e))))
SIM_MMA(sim_mma_bf16, float, 2, SIM_BF16, SIM_BF16)
SIM_MMA(sim_mma_f16, float, 2, SIM_F16, SIM_F16)
SIM_MMA(sim_mma_tf32, float, 1, SIM_TF32, SIM_TF32)
SIM_MMA(sim_mma_s8, int32_t, 4, SIM_S8, SIM_S8)
SIM_MMA(sim_mma_u8, int32_t, 4, SIM_U8, SIM_U8)
SIM_MMA(sim_mma_s8_u8, int32_t, 4, SIM_S8, SIM_U8)
SIM_MMA(sim_mma_u8_s8, int32_t, 4, SIM_U8, SIM_S8)

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
