/* A product of matrices by a primitive of oneDNN 2, with a bias and rectification where the task has them. Each worker
 * computes as many rows, or else columns, with a primitive of its own; OpenMP's threads have no part in it. */
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

/* The part of one worker. The numbers of the task have long names: oneDNN's headers name parameters M, N and K. */
enum { BY_ROWS = ROWS % THREADS == 0, HEIGHT = BY_ROWS ? ROWS / THREADS : ROWS, WIDTH = BY_ROWS ? COLUMNS : COLUMNS / THREADS };

/* libdnnl brings OpenMP along; one that is built without it has no need of these. */
extern int omp_get_max_threads(void) __attribute__((weak));
extern void omp_set_num_threads(int n) __attribute__((weak));

/* What a thread has of oneDNN: its scratch memory belongs to the thread that makes a primitive. It stays, since making it takes
 * milliseconds. */
struct product {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_memory_t in, weights, bias, out;
};

static _Thread_local struct product *mine;

static void must(dnnl_status_t status) {
  if (status != dnnl_success) abort();
}

static dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, int64_t stride) {
  dnnl_memory_desc_t d;
  must(dnnl_memory_desc_init_by_strides(&d, 2, (dnnl_dims_t){rows, columns}, dnnl_f32, (dnnl_dims_t){stride, 1}));
  return d;
}

static void rectify(dnnl_primitive_attr_t attributes) {
  dnnl_post_ops_t after;
  must(dnnl_post_ops_create(&after));
  must(dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0));
  must(dnnl_primitive_attr_set_post_ops(attributes, after));
  must(dnnl_post_ops_destroy(after));
}

static struct product *make(void) {
  struct product *p = calloc(1, sizeof *p);
  if (!p) abort();
  must(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
  must(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
  const dnnl_memory_desc_t in = matrix(HEIGHT, DEPTH, DEPTH), weights = matrix(DEPTH, WIDTH, COLUMNS), bias = matrix(1, WIDTH, WIDTH), out = matrix(HEIGHT, WIDTH, COLUMNS);
  dnnl_matmul_desc_t what;
  must(dnnl_matmul_desc_init(&what, &in, &weights, BIAS ? &bias : NULL, &out));
  dnnl_primitive_attr_t attributes;
  must(dnnl_primitive_attr_create(&attributes));
  if (RELU) rectify(attributes);
  dnnl_primitive_desc_t how;
  must(dnnl_primitive_desc_create(&how, &what, attributes, p->engine, NULL));
  must(dnnl_primitive_create(&p->primitive, how));
  must(dnnl_primitive_desc_destroy(how));
  must(dnnl_primitive_attr_destroy(attributes));
  must(dnnl_memory_create(&p->in, &in, p->engine, DNNL_MEMORY_NONE));
  must(dnnl_memory_create(&p->weights, &weights, p->engine, DNNL_MEMORY_NONE));
  must(dnnl_memory_create(&p->bias, &bias, p->engine, DNNL_MEMORY_NONE));
  must(dnnl_memory_create(&p->out, &out, p->engine, DNNL_MEMORY_NONE));
  return p;
}

static void run(void *const *args, int64_t part) {
  const int64_t row = BY_ROWS ? part * HEIGHT : 0, column = BY_ROWS ? 0 : part * WIDTH;
  struct product *p = mine ? mine : (mine = make());
  must(dnnl_memory_set_data_handle(p->in, (float *)args[0] + row * DEPTH));
  must(dnnl_memory_set_data_handle(p->weights, (float *)args[1] + column));
  if (BIAS) must(dnnl_memory_set_data_handle(p->bias, (float *)args[2] + column));
  must(dnnl_memory_set_data_handle(p->out, (float *)args[2 + BIAS] + row * COLUMNS + column));
  const dnnl_exec_arg_t of[] = {{DNNL_ARG_SRC, p->in}, {DNNL_ARG_WEIGHTS, p->weights}, {DNNL_ARG_DST, p->out}, {DNNL_ARG_BIAS, p->bias}};
  must(dnnl_primitive_execute(p->primitive, p->stream, 3 + BIAS, of));
  must(dnnl_stream_wait(p->stream));
}

static void parts(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const int before = omp_get_max_threads ? omp_get_max_threads() : 1; /* this thread's, which may be the program's own */
  if (before != 1) omp_set_num_threads(1);
  for (int64_t part = begin; part < end; part++) run(closure, part);
  if (before != 1) omp_set_num_threads(before);
}

void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) { rt->parallel(rt, parts, (void *)args, THREADS); }
