/* What hosts share: data, launches on some threads of the processor, comparison. */
#include <math.h>
#include <pthread.h>

/* A region of so many workers, each with its part of the iterations. */
struct part {
  tilth_body body;
  void *closure;
  int64_t begin, end;
  int32_t worker;
};

static void *run_part(void *p) {
  struct part *x = p;
  x->body(x->closure, x->begin, x->end, x->worker);
  return 0;
}

static void parallel(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  struct part parts[16];
  pthread_t threads[16];
  for (int w = 0; w < rt->workers; w++) {
    parts[w] = (struct part){body, closure, n * w / rt->workers, n * (w + 1) / rt->workers, w};
    if (w) pthread_create(&threads[w], 0, run_part, &parts[w]);
  }
  run_part(&parts[0]);
  for (int w = 1; w < rt->workers; w++) pthread_join(threads[w], 0);
}

/* THUNK(kernel, a[0], ...) is the function by which a thread calls a kernel with the arguments of a launch. */
#define THUNK(kernel, ...) \
  static void kernel##_thread(struct sim_thread *sim, void *closure) { void **a = closure; kernel(sim, __VA_ARGS__); }
#define OUT(memory, n) {memory, n}
#define UNPACK(...) __VA_ARGS__
/* LAUNCH(kernel, threads, blocks, workers, (OUT(..., ...), ...), arguments...) */
#define LAUNCH(kernel, threads, blocks, workers, outputs, ...) \
  do { \
    void *arguments_[] = {__VA_ARGS__}; \
    const struct sim_output outputs_[] = {UNPACK outputs}; \
    struct tilth_runtime rt_ = {workers, parallel}; \
    struct sim_launch launch_ = {#kernel, kernel##_thread, arguments_, threads, outputs_, sizeof outputs_ / sizeof *outputs_, 0}; \
    sim_run_launch(&rt_, &launch_, blocks); \
  } while (0)

static uint64_t state_ = 88172645463325252u;
static uint32_t draw(void) {
  state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
  return (uint32_t)(state_ >> 32);
}

static void *room(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(p, 0, bytes);
  return p;
}

static float *numbers(int n) {
  float *x = room(n * sizeof *x);
  for (int k = 0; k < n; k++) x[k] = (float)(int32_t)draw() * 0x1p-31f;
  return x;
}

static float bfloat(tilth_bfloat16 bits) {
  uint32_t u = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static tilth_bfloat16 *bfloats(int n) {
  float *x = numbers(n);
  tilth_bfloat16 *y = room(n * sizeof *y);
  for (int k = 0; k < n; k++) y[k] = (tilth_bfloat16)(((uint32_t *)x)[k] >> 16);
  return y;
}

/* Float16, of all sizes up to 2, without infinities. */
static uint16_t random_half(void) { return (uint16_t)(draw() & 0xbfff); }
static double half_of(uint16_t h) {
  int e = h >> 10 & 31, f = h & 1023;
  double x = e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
  return h & 0x8000 ? -x : x;
}

static uint8_t *bytes_of(int n) {
  uint8_t *x = room(n);
  for (int k = 0; k < n; k++) x[k] = (uint8_t)draw();
  return x;
}

static int differs_from(const char *name, const float *got, const double *want, int n, double tolerance) {
  double most = 0;
  for (int k = 0; k < n; k++) most = fmax(most, fabs(want[k]));
  for (int k = 0; k < n; k++)
    if (!(fabs(got[k] - want[k]) <= tolerance * most)) {
      printf("%s[%d] is %g, want %g\n", name, k, got[k], want[k]);
      return 1;
    }
  return 0;
}

static int differs(const char *name, const float *got, const float *want, int n, double tolerance) {
  double *w = room(n * sizeof *w);
  for (int k = 0; k < n; k++) w[k] = want[k];
  return differs_from(name, got, w, n, tolerance);
}
