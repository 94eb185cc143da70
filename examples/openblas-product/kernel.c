/* A product of matrices by OpenBLAS, with a bias and rectification where the task has them. Each worker computes some
 * rows, or with COLUMNS some columns, by a call of its own; OpenBLAS's threads have no part in it. */

/* As OpenBLAS declares them: only the library itself has to be installed. */
extern void cblas_sgemm(int order, int left, int right, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                        float beta, float *c, int ldc);
extern int openblas_get_num_threads(void);
extern void openblas_set_num_threads(int n);

enum { ROW_MAJOR = 101, AS_IT_IS = 111 };

struct operands {
  const float *in, *weights, *bias;
  float *out;
};

static void finish(const struct operands *o, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  if (!BIAS) return;
  for (int64_t i = row; i < row + rows; i++)
    for (int64_t j = column; j < column + columns; j++) {
      const float x = o->out[i * N + j] + o->bias[j];
      o->out[i * N + j] = RELU && x < 0 ? 0 : x;
    }
}

static void part(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct operands *o = closure;
  const int64_t row = COLUMNS ? 0 : begin, column = COLUMNS ? begin : 0;
  const int64_t rows = COLUMNS ? M : end - begin, columns = COLUMNS ? end - begin : N;
  if (begin == end) return;
  cblas_sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, (int)rows, (int)columns, K, 1, o->in + row * K, K, o->weights + column, N, 0, o->out + row * N + column, N);
  finish(o, row, column, rows, columns);
}

void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {
  struct operands o = {args[0], args[1], BIAS ? args[2] : 0, args[2 + BIAS]};
  const int before = openblas_get_num_threads(); /* those of whoever else uses it in this process */
  if (before != 1) openblas_set_num_threads(1);
  rt->parallel(rt, part, &o, COLUMNS ? N : M);
  if (before != 1) openblas_set_num_threads(before);
}
