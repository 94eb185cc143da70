/* Runs candidates on a board without an operating system, through its monitor. The bench's buffers are authoritative: before a kernel runs, the
 * board receives the parts that differ, or everything if another process has used it in between. Data derived from a seed are generated on the
 * board and verified by CRC instead of being sent. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boardlink.h"
#include "boardmodule.h"
#include "device.h"
#include "fault.h"
#include "fence.h"
#include "report.h"

enum { BOARD_ALIGN = 64, BOARD_FENCE = 64, BOARD_STACK = 64 << 10, BOARD_MODULES = 4096 };
/* A kernel may take so many times as long as the best known, and at least so many seconds. */
#define SLOWER 20
#define LEAST_DEADLINE 2.0
#define UNKNOWN_DEADLINE 20.0
/* Filling and packing may take so long. */
#define PREPARING_DEADLINE 60.0
/* How long the host waits for a call beyond the board's deadline, whose seconds an emulator takes longer for. Then it ends the call. */
#define CALL_PATIENCE 60.0
/* How a call ended that the host ended. */
#define OVERDUE UINT32_C(0x100)

/* A part of the board's memory with a fence behind it. */
struct place {
  uint32_t at;
  int64_t bytes;
};

static struct {
  struct boardlink link;
  struct link_hello hello;
  int open;
  uint32_t table; /* where the pointers for a call lie */
  struct place args[MOST_ARGS];
  int is_there[MOST_ARGS];    /* whether an argument is on the board as the bench has it */
  uint32_t sums[MOST_ARGS];   /* its CRC then, unless it is an output */
  uint32_t behind;            /* where modules begin */
  struct boardmodule *modules[BOARD_MODULES];
  int n_modules;
  const struct boardmodule *there; /* the module that is on the board */
  const struct tilth_kernel *packed; /* the kernel whose constants are packed on the board, and whose workspace is ready */
  struct place packs[MOST_PREPARED], workspace;
  uint32_t cold;
} board;

/* The board is lost, which is no kernel's doing: none can reach the link, or the monitor. */
__attribute__((noreturn)) static void lose(const char *step, const char *why) {
  char text[256];
  snprintf(text, sizeof text, "%s: %s", step, why);
  report_lost(text);
  _exit(1);
}

static void check(int how, const char *step) {
  switch (how) {
    case BOARDLINK_OK: return;
    case BOARDLINK_SILENT: lose(step, "the board answers no longer");
    case BOARDLINK_STALE: lose(step, "the board serves another program, too");
    default: lose(step, "the board refuses it");
  }
}

static int fill(uint32_t at, int64_t bytes, unsigned char value) {
  uint32_t words[] = {at, (uint32_t)bytes, value};
  return boardlink_ask(&board.link, LINK_FILL, words, sizeof words, 4, 0);
}

static int sum(const struct place *p, uint32_t *crc) {
  uint32_t words[] = {p->at, (uint32_t)p->bytes};
  int how = boardlink_ask(&board.link, LINK_SUM, words, sizeof words, 8, 0);
  if (how == BOARDLINK_OK) memcpy(crc, (const char *)boardlink_answer(&board.link) + 4, 4);
  return how;
}

static int write_memory(uint32_t at, const void *from, int64_t bytes) {
  static unsigned char out[LINK_PAYLOAD];
  int how = BOARDLINK_OK;
  for (const char *p = from; bytes > 0 && how == BOARDLINK_OK;) {
    uint32_t n = bytes < LINK_PAYLOAD - 4 ? (uint32_t)bytes : LINK_PAYLOAD - 4;
    memcpy(out, &at, 4), memcpy(out + 4, p, n);
    how = boardlink_ask(&board.link, LINK_WRITE, out, 4 + n, 4, 0);
    at += n, p += n, bytes -= n;
  }
  return how;
}

static int read_memory(uint32_t at, void *to, int64_t bytes) {
  for (char *p = to; bytes > 0;) {
    uint32_t n = bytes < LINK_PAYLOAD - 4 ? (uint32_t)bytes : LINK_PAYLOAD - 4, words[] = {at, n};
    int how = boardlink_ask(&board.link, LINK_READ, words, sizeof words, 4 + n, 0);
    if (how != BOARDLINK_OK) return how;
    memcpy(p, (const char *)boardlink_answer(&board.link) + 4, n);
    at += n, p += n, bytes -= n;
  }
  return BOARDLINK_OK;
}

/* Calls code on the board, for at most so many seconds of the board's clock. */
static int call(uint32_t entry, uint32_t a, uint32_t b, uint32_t c, uint32_t d, double seconds, struct link_called *called) {
  double hertz = (double)((uint64_t)board.hello.clock_high << 32 | board.hello.clock_low);
  uint64_t ticks = (uint64_t)(seconds * hertz);
  struct link_call request = {entry, {a, b, c, d}, board.hello.memory + BOARD_STACK, (uint32_t)ticks, (uint32_t)(ticks >> 32), board.cold};
  int how = boardlink_ask(&board.link, LINK_CALL, &request, sizeof request, sizeof *called, seconds + CALL_PATIENCE);
  int overdue = how == BOARDLINK_SILENT;
  if (overdue) how = boardlink_interrupt(&board.link, LINK_CALL, sizeof *called);
  if (how == BOARDLINK_OK) memcpy(called, boardlink_answer(&board.link), sizeof *called);
  if (overdue && called->ending == LINK_INTERRUPTED) called->ending = OVERDUE;
  board.cold = 0;
  return how;
}

/* The kernel of the turn is to blame for how a call ended, unless something interrupted it. */
static void check_ending(const struct link_called *c, const char *step, double seconds) {
  char text[256];
  switch (c->ending) {
    case LINK_RETURNED: return;
    case LINK_DEADLINE:
      snprintf(text, sizeof text, "%s: runs longer than %g s of the board's clock", step, seconds);
      fault_report_timeout(text);
    case OVERDUE:
      snprintf(text, sizeof text, "%s: runs longer than %g s of the host's clock", step, seconds + CALL_PATIENCE);
      fault_report_timeout(text);
    case LINK_FAULT:
      snprintf(text, sizeof text, "%s: the processor faults at %#" PRIx32 " (cause %#" PRIx32 ", address %#" PRIx32 ")", step, c->pc, c->cause, c->address);
      fault_report(text);
    default: lose(step, "something arrived at the board meanwhile");
  }
}

static uint32_t memory_end(void) { return board.hello.memory + board.hello.memory_bytes; }

/* The next place behind `at`, which moves. */
static struct place place(int64_t *at, int64_t bytes) {
  struct place p = {(uint32_t)*at, bytes};
  *at = (*at + bytes + BOARD_FENCE + BOARD_ALIGN - 1) / BOARD_ALIGN * BOARD_ALIGN;
  return p;
}

static int64_t aligned(uint32_t at) { return ((int64_t)at + BOARD_ALIGN - 1) / BOARD_ALIGN * BOARD_ALIGN; }

/* Everything that the board had is gone. */
static void forget(void) {
  memset(board.is_there, 0, sizeof board.is_there);
  board.there = NULL, board.packed = NULL;
}

/* Places of the arguments. 0 when the board has room for them. */
static int lay_out(const struct bench *b) {
  int64_t at = aligned(board.hello.memory + BOARD_STACK), bytes = 0;
  board.table = (uint32_t)at;
  at += BOARD_ALIGN + 4 * (MOST_ARGS + MOST_PREPARED);
  at = aligned((uint32_t)at);
  for (int32_t k = 0; k < b->n_args; k++) {
    bytes += b->args[k].bytes;
    if (at + b->args[k].bytes + 2 * BOARD_FENCE > memory_end()) {
      report_too_large("the workload's arguments have %" PRId64 " bytes or more, and board %s has %" PRIu32 " for candidates", bytes, board.hello.board,
                       board.hello.memory_bytes);
      return -1;
    }
    board.args[k] = place(&at, b->args[k].bytes);
  }
  board.behind = (uint32_t)at;
  return 0;
}

static int begin(void) {
  board.link.session += 2;
  int how = boardlink_begin(&board.link, &board.hello);
  forget();
  return how;
}

int device_ready(const struct options *o) { return (void)o, 0; }

/* Any number that no other process chooses. */
static uint32_t a_session(void) { return (uint32_t)(1e9 * seconds_now()) * UINT32_C(0x9E3779B9); }

int device_open(const struct bench *b) {
  signal(SIGPIPE, SIG_IGN); /* an emulator may end */
  boardlink_open(&board.link, b->options->device, a_session());
  if (begin() != BOARDLINK_OK) {
    report_lost("the board does not answer");
    return -1;
  }
  if (board.hello.version != LINK_VERSION || board.hello.memory_bytes < 2 * BOARD_STACK || board.hello.memory + board.hello.memory_bytes < board.hello.memory ||
      (board.hello.clock_low | board.hello.clock_high) == 0) {
    report_error("the board's monitor speaks version %" PRIu32 " of the protocol, and says that it has %" PRIu32 " bytes", board.hello.version,
                 board.hello.memory_bytes);
    return -1;
  }
  if (lay_out(b)) return -1;
  board.open = 1;
  return 0;
}

int device_is_open(void) { return board.open; }

const struct tilth_module *device_module(const char *path) {
  char message[512];
  struct boardmodule *m = board.n_modules < BOARD_MODULES ? boardmodule_read(path, message, sizeof message) : NULL;
  if (!m) {
    report_error("loading kernels: %s", board.n_modules < BOARD_MODULES ? message : "there are too many files");
    return NULL;
  }
  board.modules[board.n_modules++] = m;
  return &m->module;
}

/* The module that a kernel is in, and its number there. */
static const struct boardmodule *module_of(const struct tilth_kernel *kernel, int32_t *number) {
  for (int k = 0; k < board.n_modules; k++) {
    const struct tilth_module *m = &board.modules[k]->module;
    if (kernel < m->kernels || kernel >= m->kernels + m->n_kernels) continue;
    *number = (int32_t)(kernel - m->kernels);
    return board.modules[k];
  }
  abort(); /* kernels come from modules */
}

/* Places of what a kernel has for itself. 0 when the board has room for it. */
static int lay_out_kernel(const struct boardmodule *m, const struct boardmodule_kernel *k, const struct tilth_kernel *kernel) {
  int64_t at = board.behind, end = memory_end(), packed = 0, scratch = kernel->workspace_bytes + kernel->worker_bytes;
  place(&at, m->size);
  for (int32_t i = 0; i < k->n_packs && at < end; i++) {
    packed += k->packs[i].bytes;
    if (k->packs[i].bytes < end) board.packs[i] = place(&at, k->packs[i].bytes);
    else at = end;
  }
  if (at < end && scratch < end - at) board.workspace = place(&at, scratch);
  else at = end;
  if (at < end) return 0;
  report_error("its code has %" PRIu32 " bytes, its packed constants %" PRId64 ", its workspace %" PRId64 ", the arguments take %" PRIu32
               ", and board %s has %" PRIu32 " for all of them", m->size, packed, scratch, board.behind - board.hello.memory, board.hello.board,
               board.hello.memory_bytes);
  return -1;
}

/* Sends the module unless it is loaded. A CRC identifies the part that the board already has. */
static int send_module(const struct boardmodule *m) {
  struct place p = {board.behind, m->size};
  uint32_t there;
  if (board.there == m) return BOARDLINK_OK;
  board.packed = NULL;
  unsigned char *bytes = boardmodule_at(m, p.at);
  if (!bytes) fault_report("there is no memory for its module");
  int how = sum(&p, &there);
  if (how == BOARDLINK_OK && there != link_crc(board.link.crc, 0, bytes, m->size)) how = write_memory(p.at, bytes, m->size);
  free(bytes);
  if (how == BOARDLINK_OK) board.there = m;
  return how;
}

/* Whether all bytes are the same. */
static int is_uniform(const unsigned char *p, int64_t bytes) { return bytes > 0 && (bytes == 1 || memcmp(p, p + 1, (size_t)bytes - 1) == 0); }

/* Has the board fill an argument by its seed. */
static int fill_argument(const struct bench *b, int32_t k) {
  const struct tilth_arg *a = &b->args[k];
  uint64_t seed = (a->role == TILTH_CONSTANT ? b->options->seed : b->filled) * MOST_ARGS + k;
  struct boardimage_fill f = {board.args[k].at, (uint32_t)a->elements, a->dtype, (uint32_t)seed, (uint32_t)(seed >> 32)};
  struct link_called called;
  int how = write_memory(board.table, &f, sizeof f);
  return how == BOARDLINK_OK ? call(board.there->table.fill + board.behind, board.table, 0, 0, 0, PREPARING_DEADLINE, &called) : how;
}

/* What is sent takes longer than filling it there when it has more bytes than this. */
enum { WORTH_FILLING = 256 };

static int send_argument(const struct bench *b, int32_t k) {
  const struct tilth_arg *a = &b->args[k];
  const struct place *p = &board.args[k];
  uint32_t there, wanted = link_crc(board.link.crc, 0, b->pointers[k], (uint32_t)a->bytes);
  int how = fill((uint32_t)(p->at + p->bytes), BOARD_FENCE, FENCE_VALUE);
  board.sums[k] = wanted;
  if (how != BOARDLINK_OK || a->bytes == 0) return how;
  if (is_uniform(b->pointers[k], a->bytes)) return fill(p->at, p->bytes, *(const unsigned char *)b->pointers[k]);
  if (a->bytes <= WORTH_FILLING) return write_memory(p->at, b->pointers[k], a->bytes);
  if ((how = sum(p, &there)) != BOARDLINK_OK || there == wanted) return how;
  if (a->role != TILTH_OUTPUT && ((how = fill_argument(b, k)) != BOARDLINK_OK || (how = sum(p, &there)) != BOARDLINK_OK || there == wanted)) return how;
  return write_memory(p->at, b->pointers[k], a->bytes);
}

static int send_arguments(const struct bench *b) {
  for (int32_t k = 0; k < b->n_args; k++) {
    if (board.is_there[k]) continue;
    int how = send_argument(b, k);
    if (how != BOARDLINK_OK) return how;
    board.is_there[k] = 1;
  }
  return BOARDLINK_OK;
}

/* Writes the pointers of a call: of arguments, then of packed constants. */
static int send_pointers(const struct bench *b, int32_t n_packs) {
  uint32_t pointers[MOST_ARGS + MOST_PREPARED];
  for (int32_t k = 0; k < b->n_args; k++) pointers[k] = board.args[k].at;
  for (int32_t k = 0; k < n_packs; k++) pointers[b->n_args + k] = board.packs[k].at;
  return write_memory(board.table, pointers, 4 * (b->n_args + n_packs));
}

/* Packs a kernel's constants, and readies its workspace. */
static int prepare_kernel(const struct bench *b, const struct boardmodule *m, const struct boardmodule_kernel *k, const struct tilth_kernel *kernel) {
  int how = send_pointers(b, k->n_packs);
  if (board.packed == kernel) return how;
  for (int32_t i = 0; how == BOARDLINK_OK && i < k->n_packs; i++) {
    struct link_called called = {0};
    how = fill((uint32_t)(board.packs[i].at + board.packs[i].bytes), BOARD_FENCE, FENCE_VALUE);
    if (how == BOARDLINK_OK)
      how = call(m->table.pack + board.behind, k->packs[i].fill + board.behind, board.table, board.packs[i].at, 0, PREPARING_DEADLINE, &called);
    if (how == BOARDLINK_OK) check_ending(&called, "packing a constant", PREPARING_DEADLINE);
  }
  if (how == BOARDLINK_OK) how = fill(board.workspace.at, board.workspace.bytes, POISON);
  if (how == BOARDLINK_OK) how = fill((uint32_t)(board.workspace.at + board.workspace.bytes), BOARD_FENCE, FENCE_VALUE);
  if (how == BOARDLINK_OK) board.packed = kernel;
  return how;
}

/* Brings the board to where a kernel can run. */
static int send_what_lacks(const struct bench *b, const struct tilth_kernel *kernel) {
  int32_t number;
  const struct boardmodule *m = module_of(kernel, &number);
  const struct boardmodule_kernel *k = &m->kernels[number];
  int how = send_module(m), before = board.packed == kernel;
  for (int32_t n = 0; n < b->n_args; n++) before = before && board.is_there[n];
  if (how != BOARDLINK_OK || before) return how;
  if ((how = send_arguments(b)) != BOARDLINK_OK) return how;
  return prepare_kernel(b, m, k, kernel);
}

/* Another process may have used the board meanwhile. */
static void ready(const struct bench *b, const struct tilth_kernel *kernel) {
  int how = send_what_lacks(b, kernel);
  if (how == BOARDLINK_STALE) {
    check(begin(), "beginning with the board again");
    how = send_what_lacks(b, kernel);
  }
  check(how, "loading it on the board");
}

int device_load(const struct bench *b, const struct loaded *l) {
  int32_t number;
  const struct boardmodule *m = module_of(l->kernel, &number);
  board.packed = NULL;
  (void)b;
  return lay_out_kernel(m, &m->kernels[number], l->kernel);
}

void device_give(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (!board.is_there[arg] || bytes == 0) return;
  if (at == 0 && bytes == b->args[arg].bytes) {
    board.is_there[arg] = 0;
    return;
  }
  if (write_memory((uint32_t)(board.args[arg].at + at), (const char *)b->pointers[arg] + at, bytes) != BOARDLINK_OK) board.is_there[arg] = 0;
}

void device_take(const struct bench *b, int32_t arg, int64_t at, int64_t bytes) {
  if (!board.is_there[arg] || bytes == 0) return; /* the bench's own is what holds */
  check(read_memory((uint32_t)(board.args[arg].at + at), (char *)b->pointers[arg] + at, bytes), "reading from the board");
}

static double deadline(const struct options *o) {
  double seconds = SLOWER * o->incumbent_seconds;
  if (o->incumbent_seconds == 0) return UNKNOWN_DEADLINE;
  return seconds > LEAST_DEADLINE ? seconds : LEAST_DEADLINE;
}

double device_run(const struct bench *b, const struct loaded *l) {
  int32_t number;
  struct link_called called = {0};
  ready(b, l->kernel);
  const struct boardmodule *m = module_of(l->kernel, &number);
  double seconds = deadline(b->options), hertz = (double)((uint64_t)board.hello.clock_high << 32 | board.hello.clock_low);
  check(call(m->table.run + board.behind, m->kernels[number].run + board.behind, board.table, board.table + 4 * b->n_args, board.workspace.at, seconds,
             &called), "running it");
  check_ending(&called, "running it", seconds);
  uint64_t ticks = (uint64_t)called.ticks_high << 32 | called.ticks_low;
  return (double)(ticks > 0 ? ticks : 1) / hertz;
}

void device_flush(const struct bench *b, const struct loaded *l) { (void)b, (void)l, board.cold = 1; }

static int past_end(const struct place *p, const char *name, char *message, int message_bytes) {
  unsigned char fence[FENCE];
  memset(fence, FENCE_VALUE, sizeof fence);
  check(read_memory((uint32_t)(p->at + p->bytes), fence, BOARD_FENCE), "reading from the board");
  return fence_spoilt(fence, name, message, message_bytes);
}

/* Whether an input or a constant is what it was: nothing on the board keeps a kernel from writing there. */
static int written(const struct bench *b, int32_t k, char *message, int message_bytes) {
  uint32_t there;
  if (b->args[k].role == TILTH_OUTPUT || b->args[k].bytes == 0) return 0;
  check(sum(&board.args[k], &there), "reading from the board");
  if (there == board.sums[k]) return 0;
  board.is_there[k] = 0;
  snprintf(message, message_bytes, "writes to %s, which is read-only", b->args[k].name);
  return -1;
}

int device_overrun(const struct bench *b, const struct loaded *l, char *message, int message_bytes) {
  int32_t number;
  const struct boardmodule *m = module_of(l->kernel, &number);
  const struct boardmodule_kernel *kernel = &m->kernels[number];
  for (int32_t k = 0; k < b->n_args; k++)
    if (past_end(&board.args[k], b->args[k].name, message, message_bytes) || written(b, k, message, message_bytes)) return forget(), -1;
  for (int32_t k = 0; k < kernel->n_packs; k++)
    if (past_end(&board.packs[k], "packed constant", message, message_bytes)) return forget(), -1;
  return past_end(&board.workspace, "workspace", message, message_bytes) ? (forget(), -1) : 0;
}

/* Nothing else runs on a board, so that nothing disturbs it: all calibrations are alike. */
double device_calibrate(void) { return 1; }

/* No process serves several workloads. */
void device_close(const struct bench *b) { (void)b; }
