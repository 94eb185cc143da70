/* A dense layer by tiles of MR rows and NV vectors of eight columns, with the weights laid out in panels of as many
 * columns. M, N, K, RELU and the knobs are macros; the arguments are in the order of the workload's text. */
#define NR (8 * NV)

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(32)));

struct operands {
  const float *in, *panels, *bias;
  float *out;
};

#define INLINE static inline __attribute__((always_inline))

INLINE vec rectified(vec x) { return RELU ? (vec)((mask)x & (x > 0)) : x; }

/* What is right of the last column is computed, too, from zeros, and not stored. */
INLINE void store(const struct operands *o, vec sum, int64_t row, int64_t column) {
  float *out = o->out + row * N + column;
  if (column + 8 <= N) {
    *(vec *)out = rectified(sum + *(const vec *)(o->bias + column));
    return;
  }
  for (int lane = 0; lane < 8 && column + lane < N; lane++) {
    const float x = sum[lane] + o->bias[column + lane];
    out[lane] = RELU && x < 0 ? 0 : x;
  }
}

INLINE void tile(const struct operands *o, int64_t panel, int64_t row, const int rows) {
  const float *w = o->panels + panel * K * NR, *in = o->in + row * K;
  vec sum[MR][NV];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < NV; v++) sum[r][v] = (vec){0};
  for (int64_t k = 0; k < K; k++, w += NR) {
    if (AHEAD > 0)
      for (int v = 0; v < NV; v += 2) __builtin_prefetch((const char *)(w + 8 * v) + AHEAD);
    for (int r = 0; r < rows; r++)
      for (int v = 0; v < NV; v++) sum[r][v] += *(const vec *)(w + 8 * v) * in[r * K + k];
  }
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < NV; v++)
      if (panel * NR + 8 * v < N) store(o, sum[r][v], row + r, panel * NR + 8 * v);
}

static void panels(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct operands *o = closure;
  for (int64_t panel = begin; panel < end; panel++) {
    for (int64_t row = 0; row + MR <= M; row += MR) tile(o, panel, row, MR);
    if (M % MR > 0) tile(o, panel, M / MR * MR, M % MR);
  }
}

void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {
  struct operands o = {args[0], args[1], args[2], args[3]};
  rt->parallel(rt, panels, &o, (N + NR - 1) / NR);
}
