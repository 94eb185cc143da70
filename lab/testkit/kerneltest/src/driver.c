/* Runs kernels on the cases that it reads from standard input and writes their outputs to standard output. Every buffer
 * is an allocation of its own, filled with bytes that are NaN as floats, so that the sanitizers see accesses out of
 * bounds and a read of what was never written spoils the answer. All numbers on the wire are 64-bit little-endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct tilth_kernel *const test_kernels[];

static int64_t number(void) {
  int64_t v;
  if (fread(&v, sizeof v, 1, stdin) != 1) exit(3);
  return v;
}

static void *buffer(int64_t bytes) {
  void *p = 0;
  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 1)) exit(4);
  memset(p, 0xff, bytes);
  return p;
}

/* Runs the workers' parts one after the other, the last first: an answer that depends on their order shows. */
static void parallel(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  for (int32_t w = rt->workers - 1; w >= 0; w--) {
    int64_t begin = n * w / rt->workers, end = n * (w + 1) / rt->workers;
    if (begin < end) body(closure, begin, end, w);
  }
}

static void run(const struct tilth_kernel *k, int32_t workers, void **args) {
  struct tilth_runtime rt = {workers, parallel};
  void **prepared = calloc(k->n_prepared + 1, sizeof *prepared);
  for (int i = 0; i < k->n_prepared; i++) {
    prepared[i] = buffer(k->packs[i]->bytes);
    k->packs[i]->fill(&rt, args, prepared[i]);
  }
  void *workspace = buffer(k->workspace_bytes + workers * k->worker_bytes);
  k->run(&rt, args, prepared, workspace);
  free(workspace);
  for (int i = 0; i < k->n_prepared; i++) free(prepared[i]);
  free(prepared);
}

int main(void) {
  int64_t cases = number();
  for (int64_t c = 0; c < cases; c++) {
    fprintf(stderr, "case %d\n", (int)c);
    int64_t kernel = number(), workers = number(), n = number();
    void **args = calloc(n, sizeof *args);
    int64_t *bytes = calloc(n, sizeof *bytes), *output = calloc(n, sizeof *output);
    for (int64_t i = 0; i < n; i++) {
      bytes[i] = number(), output[i] = number();
      args[i] = buffer(bytes[i]);
      if (!output[i] && bytes[i] && fread(args[i], bytes[i], 1, stdin) != 1) exit(3);
    }
    run(test_kernels[kernel], workers, args);
    for (int64_t i = 0; i < n; i++) {
      if (output[i] && fwrite(args[i], bytes[i], 1, stdout) != 1) exit(5);
      free(args[i]);
    }
    free(args), free(bytes), free(output);
  }
  return 0;
}
