/* A product of matrices by cuBLASLt, with a bias and rectification where the task has them. Of the algorithms that the
 * library's heuristics propose for so much workspace, it takes the one with number CHOICE. */
#include <stddef.h>

/* As the library declares them: only the library itself has to be installed. */
typedef struct lt *handle;
typedef struct desc *operation;
typedef struct layout *layout;
typedef struct preference *preference;
typedef struct { uint64_t data[8]; } algorithm;
typedef struct { algorithm algo; size_t workspace; int state; float waves; int reserved[4]; } heuristic_result;

extern int cublasLtCreate(handle *h);
extern int cublasLtMatmulDescCreate(operation *o, int compute, int scale);
extern int cublasLtMatmulDescSetAttribute(operation o, int attribute, const void *value, size_t bytes);
extern int cublasLtMatrixLayoutCreate(layout *l, int type, uint64_t rows, uint64_t columns, int64_t leading);
extern int cublasLtMatmulPreferenceCreate(preference *p);
extern int cublasLtMatmulPreferenceSetAttribute(preference p, int attribute, const void *value, size_t bytes);
extern int cublasLtMatmulPreferenceDestroy(preference p);
extern int cublasLtMatmulAlgoGetHeuristic(handle h, operation o, layout a, layout b, layout c, layout d, preference p, int most, heuristic_result *found, int *n);
extern int cublasLtMatmul(handle h, operation o, const void *alpha, const void *a, layout of_a, const void *b, layout of_b, const void *beta, const void *c,
                          layout of_c, void *d, layout of_d, const algorithm *algo, void *workspace, size_t bytes, void *stream);

enum { FLOAT32 = 0, COMPUTE_FLOAT32 = 68 };
enum { EPILOGUE = 7, BIAS_POINTER = 8 };
enum { MOST_WORKSPACE = 1, LEAST_ALIGNMENT_A = 5, LEAST_ALIGNMENT_D = 8 };
enum { PLAIN = 1, WITH_RELU = 2, WITH_BIAS = 4 };
enum { NOT_SUPPORTED = 15 };

/* What is kept for a card. */
struct plan {
  int32_t generation;
  handle lt;
  operation product;
  layout left, right, out;
  algorithm chosen;
};

static const size_t workspace_bytes = (size_t)WORKSPACE_MIB << 20;

#define TRY(call)                  \
  do {                             \
    int status = call;             \
    if (status) return status;     \
  } while (0)

/* Of arguments no more is known than that they are aligned to 64 bytes. */
static int prefer(preference p) {
  const uint32_t aligned = 64;
  TRY(cublasLtMatmulPreferenceSetAttribute(p, MOST_WORKSPACE, &workspace_bytes, sizeof workspace_bytes));
  for (int a = LEAST_ALIGNMENT_A; a <= LEAST_ALIGNMENT_D; a++) TRY(cublasLtMatmulPreferenceSetAttribute(p, a, &aligned, sizeof aligned));
  return 0;
}

static int choose(struct plan *p, preference limits) {
  heuristic_result found[CHOICE + 1];
  int n = 0;
  TRY(prefer(limits));
  TRY(cublasLtMatmulAlgoGetHeuristic(p->lt, p->product, p->left, p->right, p->out, p->out, limits, CHOICE + 1, found, &n));
  if (n <= CHOICE) return NOT_SUPPORTED; /* it proposes fewer */
  p->chosen = found[CHOICE].algo;
  return found[CHOICE].state;
}

/* Matrices are row by row here and column by column there: the library computes the transposed product, of which the
 * left factor is the weights. */
static int prepare(struct plan *p, const float *bias) {
  const int epilogue = BIAS ? WITH_BIAS | (RELU ? WITH_RELU : 0) : PLAIN;
  preference limits;
  TRY(cublasLtCreate(&p->lt));
  TRY(cublasLtMatmulDescCreate(&p->product, COMPUTE_FLOAT32, FLOAT32));
  TRY(cublasLtMatmulDescSetAttribute(p->product, EPILOGUE, &epilogue, sizeof epilogue));
  if (BIAS) TRY(cublasLtMatmulDescSetAttribute(p->product, BIAS_POINTER, &bias, sizeof bias));
  TRY(cublasLtMatrixLayoutCreate(&p->left, FLOAT32, N, K, N));
  TRY(cublasLtMatrixLayoutCreate(&p->right, FLOAT32, K, M, K));
  TRY(cublasLtMatrixLayoutCreate(&p->out, FLOAT32, N, M, N));
  TRY(cublasLtMatmulPreferenceCreate(&limits));
  int status = choose(p, limits);
  cublasLtMatmulPreferenceDestroy(limits);
  return status;
}

int kernel(const struct tilth_card *card, void *const *args, void *workspace) {
  static struct plan plans[16];
  struct plan *p = &plans[card->number];
  const float one = 1, zero = 0, *in = args[0], *weights = args[1], *bias = BIAS ? args[2] : NULL;
  float *out = args[2 + BIAS];
  if (p->generation != card->generation) {
    TRY(prepare(p, bias));
    p->generation = card->generation;
  }
  if (BIAS) TRY(cublasLtMatmulDescSetAttribute(p->product, BIAS_POINTER, &bias, sizeof bias));
  return cublasLtMatmul(p->lt, p->product, &one, weights, p->left, in, p->right, &zero, out, p->out, out, p->out, &p->chosen, workspace, workspace_bytes, card->stream);
}
