/* The simulator: units, queues, tokens, time, and what instructions do to scratchpads. */
#include "vta.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUE = 128, RINGS = VTA_RINGS, TOKENS = 16, GRANULE = 64 };

enum kind { LOAD, STORE, COMPUTE, POP, PUSH };

/* Kinds of tokens. */
enum { FREE, FILLED, TOKEN_KINDS };

/* How much of each unit's work is known to be finished: the instructions that it had executed. */
struct clocks {
  uint32_t of[VTA_UNITS];
};

struct token {
  double time;
  struct clocks known;
};

struct token_queue {
  struct token tokens[TOKENS];
  int head, count;
};

struct instruction {
  enum kind kind;
  int n, element_bytes, ring, token;
  char *memory;
  const struct vta_operation *operation;
  struct vta_place operands[VTA_OPERANDS];
  double immediates[VTA_IMMEDIATES];
  union {
    struct vta_loop loops[VTA_LOOPS];
    struct vta_dim dims[VTA_LOOPS];
  };
};

struct unit {
  struct instruction queue[QUEUE];
  int head, count;
  double time; /* when it is ready for its next instruction */
  struct clocks known;
};

/* Slots in a scratchpad, all of one size. One unit fills the current slot while others use those before. */
struct ring {
  struct vta_place first;
  int32_t slot_bytes, slots, slot, element_bytes;
};

/* Who accessed a granule of a scratchpad last. */
struct history {
  int32_t writer;
  uint32_t written, read[VTA_UNITS];
};

struct vta {
  struct unit units[VTA_UNITS];
  struct ring rings[RINGS];
  struct token_queue tokens[RINGS][TOKEN_KINDS];
  char *scratchpads[VTA_MEMORIES];
  struct history *histories[VTA_MEMORIES];
  double opened;
};

static const int32_t sizes[VTA_MEMORIES] = {VTA_INPUT_BYTES, VTA_WEIGHT_BYTES, VTA_SUM_BYTES, VTA_RESULT_BYTES};
static const char *const memories[VTA_MEMORIES] = {"inputs", "weights", "sums", "results"};
static const char *const unit_names[VTA_UNITS] = {"load", "compute", "store"};

#define ALL_BYTES (VTA_INPUT_BYTES + VTA_WEIGHT_BYTES + VTA_SUM_BYTES + VTA_RESULT_BYTES)
#define ROUNDED(n) (((n) + 63) / 64 * 64)

_Static_assert(ROUNDED(sizeof(struct vta)) + ALL_BYTES + ALL_BYTES / GRANULE * sizeof(struct history) <= VTA_WORKSPACE_BYTES,
               "the workspace is too small");

/* The simulated seconds of this thread's kernels, without and less those that simulating took. */
static _Thread_local double total, ahead;

double tilth_simulated(void) { return ahead; }
double vta_seconds(void) { return total; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("vta-sim: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}

struct vta *vta_open(void *workspace) {
  struct vta *v = workspace;
  v->opened = now();
  char *at = (char *)workspace + ROUNDED(sizeof *v);
  for (struct unit *u = v->units; u < v->units + VTA_UNITS; u++) u->head = u->count = 0, u->time = 0, u->known = (struct clocks){{0}};
  memset(v->tokens, 0, sizeof v->tokens), memset(v->rings, 0, sizeof v->rings);
  for (int m = 0; m < VTA_MEMORIES; at += sizes[m++]) v->scratchpads[m] = at;
  memset(at, 0, ALL_BYTES / GRANULE * sizeof(struct history));
  for (int m = 0; m < VTA_MEMORIES; at += sizes[m++] / GRANULE * sizeof(struct history)) v->histories[m] = (struct history *)at;
  return v;
}

/* Records an access to a scratchpad, and reports one that no token orders after an earlier one of another unit. */
static void touch(struct vta *v, int unit, struct vta_place p, int64_t bytes, int writes, const char *what) {
  if (p.byte < 0 || p.byte + bytes > sizes[p.memory])
    fail("address: %s accesses byte %lld of %s, which have %d", what, (long long)p.byte + bytes - 1, memories[p.memory], sizes[p.memory]);
  const struct clocks *known = &v->units[unit].known;
  for (int64_t g = p.byte / GRANULE; g <= (p.byte + bytes - 1) / GRANULE; g++) {
    struct history *h = &v->histories[p.memory][g];
    if (h->written > known->of[h->writer] && h->writer != unit)
      fail("race: the %s unit's %s %s byte %lld of %s, which the %s unit writes, and no token orders them", unit_names[unit], what,
           writes ? "writes" : "reads", (long long)g * GRANULE, memories[p.memory], unit_names[h->writer]);
    for (int u = 0; writes && u < VTA_UNITS; u++)
      if (u != unit && h->read[u] > known->of[u])
        fail("race: the %s unit's %s writes byte %lld of %s, which the %s unit reads, and no token orders them", unit_names[unit], what,
             (long long)g * GRANULE, memories[p.memory], unit_names[u]);
    if (writes) h->writer = unit, h->written = known->of[unit];
    else h->read[unit] = known->of[unit];
  }
}

/* Copies between memory and a scratchpad. Returns the cycles of its bursts. */
static double copy(struct vta *v, int unit, const struct instruction *i, int level, struct vta_place p, char *memory, int valid) {
  int load = i->kind == LOAD;
  const struct vta_dim *d = &i->dims[level];
  double cycles = 0;
  if (level == i->n - 1 && d->place == i->element_bytes && d->memory == i->element_bytes) { /* contiguous */
    char *at = v->scratchpads[p.memory] + p.byte;
    int64_t bytes = (int64_t)d->iterations * i->element_bytes;
    int inside = valid && d->first < d->end;
    int64_t first = inside ? (int64_t)d->first * i->element_bytes : bytes, end = inside ? (int64_t)d->end * i->element_bytes : bytes;
    touch(v, unit, p, bytes, load, load ? "load" : "store");
    if (load) {
      memset(at, 0, first);
      memcpy(at + first, memory + first, end - first);
      memset(at + end, 0, bytes - end);
    } else if (first < end) {
      memcpy(memory + first, at + first, end - first);
    }
    return first < end ? VTA_BURST_CYCLES + (double)((end - first + VTA_BEAT_BYTES - 1) / VTA_BEAT_BYTES) : 0;
  }
  for (int32_t k = 0; k < d->iterations; k++) {
    int inside = valid && k >= d->first && k < d->end;
    struct vta_place q = {p.memory, p.byte + k * d->place};
    if (level < i->n - 1) {
      cycles += copy(v, unit, i, level + 1, q, memory + k * d->memory, inside);
      continue;
    }
    char *at = v->scratchpads[q.memory] + q.byte;
    touch(v, unit, q, i->element_bytes, load, load ? "load" : "store");
    if (load && inside) memcpy(at, memory + k * d->memory, i->element_bytes);
    else if (load) memset(at, 0, i->element_bytes);
    else if (inside) memcpy(memory + k * d->memory, at, i->element_bytes);
    if (inside) cycles += VTA_BURST_CYCLES + 1;
  }
  return cycles;
}

/* Records the rows that an operand takes in all iterations. */
static void touch_rows(struct vta *v, const struct instruction *i, int operand, int level, struct vta_place p) {
  while (level < i->n && i->loops[level].step[operand] == 0) level++;
  if (level == i->n) {
    const struct vta_access *a = &i->operation->access[operand];
    for (int32_t k = 0; k < a->pieces; k++)
      touch(v, VTA_COMPUTE, (struct vta_place){p.memory, p.byte + k * (int32_t)i->immediates[0]}, a->bytes, operand == 0,
            i->operation->name);
    return;
  }
  for (int32_t k = 0; k < i->loops[level].iterations; k++)
    touch_rows(v, i, operand, level + 1, (struct vta_place){p.memory, p.byte + k * i->loops[level].step[operand]});
}

/* Computes all steps of the loops from a level on. */
static void steps(const struct instruction *i, int level, char *const *operands) {
  void *at[VTA_OPERANDS];
  int count = i->operation->operands;
  memcpy(at, operands, count * sizeof *at);
  if (level == i->n) {
    i->operation->step(at, i->immediates);
    return;
  }
  const struct vta_loop *l = &i->loops[level];
  for (int32_t k = 0; k < l->iterations; k++) {
    if (level == i->n - 1) i->operation->step(at, i->immediates);
    else steps(i, level + 1, (char *const *)at);
    for (int o = 0; o < count; o++) at[o] = (char *)at[o] + l->step[o];
  }
}

static double compute(struct vta *v, const struct instruction *i) {
  char *operands[VTA_OPERANDS];
  for (int o = 0; o < i->operation->operands; o++) {
    touch_rows(v, i, o, 0, i->operands[o]);
    operands[o] = v->scratchpads[i->operands[o].memory] + i->operands[o].byte;
  }
  steps(i, 0, operands);
  double all = 1;
  for (int k = 0; k < i->n; k++) all *= i->loops[k].iterations;
  return VTA_COMPUTE_CYCLES + all;
}

static void pop(struct unit *u, struct token_queue *q) {
  const struct token *t = &q->tokens[q->head];
  if (t->time > u->time) u->time = t->time;
  for (int k = 0; k < VTA_UNITS; k++)
    if (t->known.of[k] > u->known.of[k]) u->known.of[k] = t->known.of[k];
  q->head = (q->head + 1) % TOKENS, q->count--;
}

static void push(const struct unit *u, struct token_queue *q) {
  if (q->count == TOKENS) fail("tokens: a ring has more than %d", TOKENS);
  q->tokens[(q->head + q->count++) % TOKENS] = (struct token){u->time, u->known};
}

/* Executes a unit's next instruction, unless there is none or a token is missing. */
static int step(struct vta *v, int unit) {
  struct unit *u = &v->units[unit];
  const struct instruction *i = &u->queue[u->head];
  if (u->count == 0 || i->kind == POP && v->tokens[i->ring][i->token].count == 0) return 0;
  u->known.of[unit]++;
  switch (i->kind) {
    case POP: pop(u, &v->tokens[i->ring][i->token]); break;
    case PUSH: push(u, &v->tokens[i->ring][i->token]); break;
    case COMPUTE: u->time += compute(v, i); break;
    default: u->time += VTA_COPY_CYCLES + copy(v, unit, i, 0, i->operands[0], i->memory, 1);
  }
  u->head = (u->head + 1) % QUEUE, u->count--;
  return 1;
}

/* Executes instructions until no unit can go on. Returns how many. */
static int advance(struct vta *v) {
  int all = 0;
  for (int executed = 1; executed;) {
    executed = 0;
    for (int unit = 0; unit < VTA_UNITS; unit++)
      while (step(v, unit)) executed++;
    all += executed;
  }
  return all;
}

static void deadlock(const struct vta *v) {
  char text[512] = "";
  for (int unit = 0; unit < VTA_UNITS; unit++) {
    const struct unit *u = &v->units[unit];
    const struct instruction *i = &u->queue[u->head];
    size_t used = strlen(text);
    if (u->count > 0)
      snprintf(text + used, sizeof text - used, "%s the %s unit waits until ring %d is %s", used ? ";" : "", unit_names[unit], i->ring,
               i->token == FREE ? "free" : "filled");
  }
  fail("deadlock:%s", text);
}

/* A place in a unit's queue, once there is one. */
static struct instruction *issue(struct vta *v, int unit, enum kind kind) {
  struct unit *u = &v->units[unit];
  if (u->count == QUEUE && (advance(v) == 0 || u->count == QUEUE)) deadlock(v);
  struct instruction *i = &u->queue[(u->head + u->count++) % QUEUE];
  i->kind = kind;
  return i;
}

void vta_close(struct vta *v) {
  double last = 0;
  advance(v);
  for (int unit = 0; unit < VTA_UNITS; unit++) {
    if (v->units[unit].count > 0) deadlock(v);
    if (v->units[unit].time > last) last = v->units[unit].time;
  }
  for (int ring = 0; ring < RINGS; ring++) {
    const struct token_queue *t = v->tokens[ring];
    if (t[FREE].count != v->rings[ring].slots || t[FILLED].count > 0)
      fail("tokens: ring %d of %d slots ends with %d free and %d filled", ring, v->rings[ring].slots, t[FREE].count, t[FILLED].count);
  }
  total += last / VTA_CLOCK;
  ahead += last / VTA_CLOCK - (now() - v->opened);
}

void vta_ring(struct vta *v, int ring, int memory, int64_t byte, int64_t slot_bytes, int slots, int element_bytes) {
  if (ring >= RINGS || slots > TOKENS) fail("ring %d of %d slots: there are %d rings of up to %d", ring, slots, RINGS, TOKENS);
  v->rings[ring] = (struct ring){{memory, (int32_t)byte}, (int32_t)slot_bytes, slots, 0, element_bytes};
  v->tokens[ring][FREE].count = slots;
}

static void token(struct vta *v, int unit, int ring, enum kind kind, int which) {
  struct instruction *i = issue(v, unit, kind);
  i->ring = ring, i->token = which;
}

void vta_acquire(struct vta *v, int unit, int ring) {
  struct ring *r = &v->rings[ring];
  r->slot = (r->slot + 1) % r->slots;
  token(v, unit, ring, POP, FREE);
}

void vta_publish(struct vta *v, int unit, int ring) { token(v, unit, ring, PUSH, FILLED); }
void vta_await(struct vta *v, int unit, int ring) { token(v, unit, ring, POP, FILLED); }
void vta_release(struct vta *v, int unit, int ring) { token(v, unit, ring, PUSH, FREE); }

struct vta_place vta_at(const struct vta *v, int ring, int64_t element) {
  const struct ring *r = &v->rings[ring];
  return (struct vta_place){r->first.memory, (int32_t)(r->first.byte + r->slot * r->slot_bytes + element * r->element_bytes)};
}

static void issue_copy(struct vta *v, int unit, enum kind kind, struct vta_place p, char *memory, int element_bytes, int n,
                       const struct vta_dim *dims) {
  struct instruction *i = issue(v, unit, kind);
  i->operands[0] = p, i->memory = memory, i->element_bytes = element_bytes, i->n = n;
  memcpy(i->dims, dims, n * sizeof *dims);
  for (struct vta_dim *d = i->dims; d < i->dims + n; d++) {
    if (d->first < 0) d->first = 0;
    if (d->end > d->iterations) d->end = d->iterations;
  }
}

void vta_load(struct vta *v, struct vta_place to, const void *from, int element_bytes, int n, const struct vta_dim *dims) {
  issue_copy(v, VTA_LOAD, LOAD, to, (char *)from, element_bytes, n, dims);
}

void vta_store(struct vta *v, struct vta_place from, void *to, int element_bytes, int n, const struct vta_dim *dims) {
  issue_copy(v, VTA_STORE, STORE, from, to, element_bytes, n, dims);
}

void vta_compute(struct vta *v, const struct vta_operation *o, const struct vta_place *operands, const double *immediates, int n,
                 const struct vta_loop *loops) {
  struct instruction *i = issue(v, VTA_COMPUTE, COMPUTE);
  i->operation = o, i->n = n;
  memcpy(i->operands, operands, o->operands * sizeof *operands);
  if (immediates) memcpy(i->immediates, immediates, sizeof i->immediates);
  memcpy(i->loops, loops, n * sizeof *loops);
}
