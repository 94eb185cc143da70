#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flush.h"
#include "device.h"
#include "element.h"
#include "judge.h"
#include "module.h"

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_arg(struct bench *b, int32_t k) {
  const struct tilth_arg *a = &b->args[k];
  int error = buffer_open(&b->buffers[k], a->name, a->bytes, 0);
  if (error) {
    report_error("allocating %lld bytes for %s: %s", (long long)a->bytes, a->name, strerror(error));
    return -1;
  }
  b->pointers[k] = b->buffers[k].data;
  if (a->role == TILTH_OUTPUT) {
    buffer_poison(&b->buffers[k]);
    return 0;
  }
  if (a->role == TILTH_CONSTANT) element_fill(b->pointers[k], a->elements, a->dtype, b->options->seed * MOST_ARGS + k);
  buffer_protect(&b->buffers[k]);
  return 0;
}

int bench_open(struct bench *b, const struct options *o, const struct tilth_runtime *rt, const struct tilth_module *reference) {
  b->options = o, b->runtime = rt, b->n_args = reference->n_args;
  if (b->n_args < 1 || b->n_args > MOST_ARGS || reference->n_kernels != 1) {
    report_error("the reference has %d arguments and %d kernels", reference->n_args, reference->n_kernels);
    return -1;
  }
  for (int32_t k = 0; k < b->n_args; k++) {
    b->args[k] = reference->args[k];
    b->args[k].name = strdup(reference->args[k].name);
    if (b->args[k].bytes != b->args[k].elements * element_bytes(b->args[k].dtype)) {
      report_error("argument %s of the reference has an invalid type or size", b->args[k].name);
      return -1;
    }
    if (open_arg(b, k)) return -1;
  }
  return 0;
}

void bench_close(struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++) {
    buffer_close(&b->buffers[k]);
    free((void *)b->args[k].name);
  }
  memset(b, 0, sizeof *b);
}

/* Elements of an argument that are filled. */
struct filling {
  const struct tilth_arg *arg;
  void *data;
  uint64_t seed;
};

static void fill_some(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct filling *f = closure;
  (void)worker;
  element_fill_some(f->data, begin, end, f->arg->dtype, f->seed);
}

/* Gives the whole argument to the device. */
static void give(const struct bench *b, int32_t k) {
  if (device_is_open()) device_give(b, k, 0, b->args[k].bytes);
}

static int is_count(const struct tilth_arg *a) { return a->points[TILTH_POINTS - 1] > 0 && a->bytes == sizeof(int64_t); }

int32_t bench_first(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args && !b->options->compute; k++)
    if (is_count(&b->args[k])) return 0;
  return TILTH_POINTS - 1;
}

void bench_point(struct bench *b, int32_t p) {
  for (int32_t k = 0; k < b->n_args; k++) {
    if (!is_count(&b->args[k])) continue;
    buffer_unprotect(&b->buffers[k]);
    memcpy(b->pointers[k], &b->args[k].points[p], sizeof(int64_t));
    buffer_protect(&b->buffers[k]);
    give(b, k);
  }
}

void bench_fill(struct bench *b, uint64_t seed) {
  if (b->filled == seed) return;
  b->filled = seed;
  for (int32_t k = 0; k < b->n_args; k++) {
    if (b->args[k].role != TILTH_INPUT) continue;
    struct filling f = {&b->args[k], b->pointers[k], seed * MOST_ARGS + k};
    buffer_unprotect(&b->buffers[k]);
    if (is_count(&b->args[k])) memcpy(b->pointers[k], &b->args[k].points[TILTH_POINTS - 1], sizeof(int64_t));
    else b->runtime->parallel(b->runtime, fill_some, &f, b->args[k].elements);
    /* Protecting pages and writing to them again takes longer than many kernels, and writes were noticed when the kernel was measured. */
    if (!b->options->examine && !b->options->compute) buffer_protect(&b->buffers[k]);
    give(b, k);
  }
}

static void read_inputs(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct bench *b = closure;
  (void)begin, (void)end, (void)worker;
  for (int32_t k = 0; k < b->n_args; k++)
    for (int64_t at = 0; b->args[k].role == TILTH_INPUT && at < b->args[k].bytes; at += FLUSH_LINE)
      (void)*((const volatile char *)b->pointers[k] + at);
}

static void poison_some(void *closure, int64_t begin, int64_t end, int32_t worker) {
  (void)worker;
  memset((char *)closure + begin, POISON, end - begin);
}

void bench_warm(struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_OUTPUT) {
      b->runtime->parallel(b->runtime, poison_some, b->pointers[k], b->args[k].bytes);
      give(b, k);
    }
  b->runtime->parallel(b->runtime, read_inputs, b, b->runtime->workers);
}

int bench_matches(const struct bench *b, const struct tilth_module *module) {
  int ok = module->n_args == b->n_args;
  for (int32_t k = 0; ok && k < b->n_args; k++) {
    const struct tilth_arg *x = &b->args[k], *y = &module->args[k];
    ok = x->elements == y->elements && x->bytes == y->bytes && x->dtype == y->dtype && x->role == y->role;
  }
  if (!ok) report_error("the candidates' arguments are not those of the reference");
  return ok ? 0 : -1;
}

/* As far ahead as kernels prefetch packed constants and what they keep in scratch memory: 64 KiB, and parts that are read again and again, which
 * the second cache holds. */
#define AHEAD_BYTES (1 << 20)

static int open_own(struct buffer *b, const char *name, int64_t bytes) {
  int error = bytes < 0 ? -1 : buffer_open(b, name, bytes, AHEAD_BYTES);
  if (error) report_error("allocating %lld bytes of %s: %s", (long long)bytes, name, strerror(error < 0 ? 22 : error));
  return error;
}

/* Gives the constant a place of at least `bytes` bytes in which it can be written. */
static int make_room(struct prepared *p, int64_t bytes) {
  p->pack = NULL;
  if (bytes >= 0 && p->room.pages && p->room.bytes >= bytes) return buffer_unprotect(&p->room);
  buffer_close(&p->room);
  return open_own(&p->room, "packed constant", bytes > p->most ? bytes : p->most);
}

/* Packing millions of weights takes longer than measuring, so what the kernel before had packed alike stays. */
static int prepare(struct bench *b, struct prepared *p, const struct tilth_pack *pack) {
  if (p->pack == pack) return 0;
  if (make_room(p, pack->bytes)) return -1;
  p->buffer = buffer_tail(&p->room, pack->bytes);
  buffer_mark(&p->buffer);
  pack->fill(b->runtime, b->pointers, p->buffer.data);
  buffer_protect(&p->room);
  p->pack = pack;
  return 0;
}

int64_t bench_workspace(const struct bench *b, const struct tilth_kernel *kernel) {
  return kernel->workspace_bytes + b->runtime->workers * kernel->worker_bytes;
}

static int prepare_all(struct bench *b, struct loaded *l, const struct tilth_kernel *kernel) {
  l->kernel = kernel;
  if (kernel->n_prepared < 0 || kernel->n_prepared > MOST_PREPARED) {
    report_error("kernel %s has %d packed constants", kernel->id, kernel->n_prepared);
    return -1;
  }
  for (int32_t k = 0; k < kernel->n_prepared; k++) {
    if (prepare(b, &l->prepared[k], kernel->packs[k])) return -1;
    l->prepared_pointers[k] = l->prepared[k].buffer.data;
  }
  return 0;
}

int bench_reserve(const struct bench *b, struct buffer *scratch, const struct tilth_kernel *const *kernels, int32_t n, int64_t limit) {
  int64_t most = 0;
  if (device_is_open()) return 0;
  for (int32_t k = 0; k < n; k++) {
    int64_t bytes = bench_workspace(b, kernels[k]);
    if (bytes > most && bytes <= limit) most = bytes;
  }
  return open_own(scratch, "workspace", most);
}

void bench_expect(struct loaded *l, const struct tilth_kernel *const *kernels, int32_t n, int64_t limit) {
  for (int32_t k = 0; k < n; k++)
    for (int32_t i = 0; i < kernels[k]->n_prepared && i < MOST_PREPARED; i++) {
      int64_t bytes = kernels[k]->packs[i]->bytes;
      if (bytes > l->prepared[i].most && bytes <= limit) l->prepared[i].most = bytes;
    }
}

int64_t bench_packed(const struct tilth_kernel *kernel) {
  int64_t bytes = 0;
  for (int32_t k = 0; k < kernel->n_prepared; k++) bytes += kernel->packs[k]->bytes;
  return bytes;
}

void bench_unload(struct loaded *l) {
  for (int32_t k = 0; k < MOST_PREPARED; k++) buffer_close(&l->prepared[k].room);
  memset(l, 0, sizeof *l);
}

int bench_load(struct bench *b, struct loaded *l, const struct tilth_kernel *kernel, struct buffer *scratch) {
  int64_t bytes = bench_workspace(b, kernel);
  if (device_is_open()) {
    l->kernel = kernel;
    return device_load(b, l);
  }
  if (bytes < 0 || bytes > scratch->bytes) {
    buffer_close(scratch);
    if (open_own(scratch, "workspace", bytes)) return -1;
  }
  l->workspace = buffer_tail(scratch, bytes);
  buffer_poison(&l->workspace);
  return prepare_all(b, l, kernel);
}

/* A constant larger than this is not read by a kernel that has packed ones: it was packed. */
#define SMALL_CONSTANT (64 << 10)

struct span {
  const char *data;
  int64_t bytes;
};

static void flush_lines(void *closure, int64_t begin, int64_t end, int32_t worker) {
  const struct span *s = closure;
  (void)worker;
  end *= FLUSH_LINE;
  flush_caches(s->data + begin * FLUSH_LINE, (end < s->bytes ? end : s->bytes) - begin * FLUSH_LINE);
}

static void flush_all(const struct bench *b, const void *data, int64_t bytes) {
  struct span s = {data, bytes};
  b->runtime->parallel(b->runtime, flush_lines, &s, (bytes + FLUSH_LINE - 1) / FLUSH_LINE);
}

static void nothing(void *closure, int64_t begin, int64_t end, int32_t worker) { (void)closure, (void)begin, (void)end, (void)worker; }

void bench_flush(const struct bench *b, const struct loaded *l) {
  if (device_is_open()) {
    device_flush(b, l);
    return;
  }
  for (int32_t k = 0; k < l->kernel->n_prepared; k++) flush_all(b, l->prepared_pointers[k], l->prepared[k].pack->bytes);
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_CONSTANT && (l->kernel->n_prepared == 0 || b->args[k].bytes <= SMALL_CONSTANT))
      flush_all(b, b->pointers[k], b->args[k].bytes);
  b->runtime->parallel(b->runtime, nothing, NULL, b->runtime->workers);
}

double bench_run(struct bench *b, const struct loaded *l) {
  int32_t first = bench_first(b);
  double total = 0;
  for (int32_t p = first; p < TILTH_POINTS; p++) {
    bench_point(b, p);
    total += bench_once(b, l);
  }
  return total / (TILTH_POINTS - first);
}

double bench_once(const struct bench *b, const struct loaded *l) {
  if (device_is_open()) return device_run(b, l);
  double simulated = module_simulated(), begin = seconds_now();
  l->kernel->run(b->runtime, b->pointers, l->prepared_pointers, l->workspace.data);
  double end = seconds_now();
  return end - begin + (module_simulated() - simulated);
}

void bench_hide_ends(struct loaded *l) {
  for (int32_t k = 0; k < l->kernel->n_prepared; k++) buffer_hide_end(&l->prepared[k].room);
  buffer_hide_end(&l->workspace);
}

void bench_show_ends(struct loaded *l) {
  for (int32_t k = 0; k < l->kernel->n_prepared; k++) buffer_show_end(&l->prepared[k].room);
  buffer_show_end(&l->workspace);
}

void bench_poison(struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_OUTPUT) {
      buffer_poison(&b->buffers[k]);
      give(b, k);
    }
}

void bench_collect(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args && device_is_open(); k++)
    if (b->args[k].role == TILTH_OUTPUT) device_take(b, k, 0, b->args[k].bytes);
}

/* Returns the byte offset of the last disturbed element of output k. *bytes receives its size, or 0 if k is not an output with elements. */
static int64_t spoilt(const struct bench *b, int32_t k, int64_t *bytes) {
  const struct tilth_arg *a = &b->args[k];
  *bytes = a->role == TILTH_OUTPUT && a->elements > 0 ? a->bytes / a->elements : 0;
  return *bytes > 0 ? (int64_t)(b->disturbed % (uint64_t)a->elements) * *bytes : 0;
}

static int is_poison(const unsigned char *element, int64_t bytes) {
  while (bytes > 0 && element[bytes - 1] == POISON) bytes--;
  return bytes == 0;
}

/* An element becomes what it was not: the complement. Gaps between elements, which hold poison, stay. */
static void spoil(unsigned char *element, int64_t bytes, unsigned char *spoilt) {
  int stays = is_poison(element, bytes);
  for (int64_t k = 0; k < bytes && !stays; k++) element[k] = ~element[k];
  memcpy(spoilt, element, bytes);
}

void bench_disturb(struct bench *b) {
  b->disturbed = (uint64_t)(1e9 * seconds_now()) * UINT64_C(0x9E3779B97F4A7C15) >> 20;
  for (int32_t k = 0; k < b->n_args; k++) {
    int64_t bytes, at = spoilt(b, k, &bytes);
    if (bytes > 0 && device_is_open()) device_take(b, k, at, bytes);
    spoil((unsigned char *)b->pointers[k] + at, bytes, b->spoilt[k]);
    if (bytes > 0 && device_is_open()) device_give(b, k, at, bytes);
  }
}

int bench_disturbed(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++) {
    int64_t bytes, at = spoilt(b, k, &bytes);
    if (bytes > 0 && device_is_open()) device_take(b, k, at, bytes);
    if (bytes > 0 && !is_poison(b->spoilt[k], bytes) && memcmp((const char *)b->pointers[k] + at, b->spoilt[k], bytes) == 0) return 1;
  }
  return 0;
}

static int check_canaries(const struct buffer *b, char *message, int message_bytes) {
  int64_t overrun = b->pages ? buffer_overrun(b) : 0;
  if (overrun == 0) return 0;
  snprintf(message, message_bytes, "writes %lld bytes %s %s", (long long)llabs(overrun),
           overrun < 0 ? "before the beginning of" : "past the end of", b->name);
  return -1;
}

static int check_all_canaries(const struct bench *b, const struct loaded *l, char *message, int message_bytes) {
  if (device_is_open()) return device_overrun(b, l, message, message_bytes);
  int bad = check_canaries(&l->workspace, message, message_bytes);
  for (int32_t k = 0; !bad && k < l->kernel->n_prepared; k++) bad = check_canaries(&l->prepared[k].buffer, message, message_bytes);
  for (int32_t k = 0; !bad && k < b->n_args; k++) /* inputs and constants are read-only */
    if (b->args[k].role == TILTH_OUTPUT) bad = check_canaries(&b->buffers[k], message, message_bytes);
  return bad;
}

const char *bench_verify(struct bench *b, const struct loaded *l, int32_t index, char *message, int message_bytes) {
  if (check_all_canaries(b, l, message, message_bytes)) return "overrun";
  bench_collect(b);
  judge_hand_in(b, 0);
  report_ran(index, l->kernel->error_growth);
  return judge_wait(b).op == JUDGE_GO_ON ? "ok" : "wrong";
}

const struct buffer *bench_find(const struct bench *b, const struct loaded *l, const void *address, int64_t *offset) {
  for (int32_t k = 0; k < b->n_args; k++)
    if (buffer_holds(&b->buffers[k], address, offset)) return &b->buffers[k];
  for (int32_t k = 0; l && k < MOST_PREPARED; k++)
    if (buffer_holds(&l->prepared[k].buffer, address, offset)) return &l->prepared[k].buffer;
  return l && buffer_holds(&l->workspace, address, offset) ? &l->workspace : NULL;
}
