#define _GNU_SOURCE
#include "judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT_ALIGN = 64, JUDGE_FD = 100, MOST_WORDS = 1 << 14, MOST_ARGUMENTS = 1 << 20 };
/* What the seeds of sets that follow one another differ by. */
#define NEXT_SET UINT64_C(0x9E3779B97F4A7C15)

static struct {
  int fd;
  unsigned char *slots;
  uint64_t n, slot_bytes, bytes;
} judge = {.fd = -1};

int judge_open(void) {
  judge.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, JUDGE_FD);
  return judge.fd < 0 || dup2(STDERR_FILENO, STDIN_FILENO) < 0 ? errno : 0;
}

static uint64_t slot_aligned(int64_t bytes) { return ((uint64_t)bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN; }

int judge_share(struct bench *b) {
  struct stat file;
  judge.slot_bytes = 0;
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_OUTPUT) judge.slot_bytes += slot_aligned(b->args[k].bytes);
  if (fstat(b->options->answers_fd, &file) || judge.slot_bytes == 0) {
    report_error("the workload has no outputs, or the answers no file");
    return -1;
  }
  judge.bytes = (uint64_t)file.st_size;
  judge.n = judge.bytes / judge.slot_bytes;
  judge.slots = mmap(NULL, judge.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->options->answers_fd, 0);
  if (judge.slots == MAP_FAILED) {
    report_error("sharing %lld bytes with the judge: %s", (long long)file.st_size, strerror(errno));
    return -1;
  }
  if (!b->options->serve) close(b->options->answers_fd);
  return 0;
}

void judge_unshare(void) { munmap(judge.slots, judge.bytes); }

/* Reads from the judge. Exits if the judge has gone. */
static void read_judge(void *text, size_t bytes) {
  for (size_t have = 0; have < bytes;) {
    ssize_t n = read(judge.fd, (char *)text + have, bytes - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(2);
    have += n;
  }
}

int judge_arguments(int *argc, char ***argv) {
  static char *words[MOST_WORDS] = {"harness"}, *text;
  struct judge_word w;
  read_judge(&w, sizeof w);
  free(text);
  text = w.op == JUDGE_ARGUMENTS && w.n < MOST_ARGUMENTS ? calloc(1, w.n + 1) : NULL;
  if (!text) {
    report_error("a command line of %llu bytes, or another word", (unsigned long long)w.n);
    return -1;
  }
  read_judge(text, w.n);
  *argc = 1, *argv = words;
  for (char *at = text; at < text + w.n; at += strlen(at) + 1) {
    if (*argc == MOST_WORDS) {
      report_error("a command line of more than %d words", MOST_WORDS);
      return -1;
    }
    words[(*argc)++] = at;
  }
  return 0;
}

struct judge_word judge_wait(struct bench *b) {
  struct judge_word w;
  read_judge(&w, sizeof w);
  if (w.op == JUDGE_GO_ON || w.op == JUDGE_WRONG || w.op == JUDGE_LOAD) bench_fill(b, w.seed);
  return w;
}

void judge_hand_in(const struct bench *b, uint64_t slot) {
  unsigned char *at = judge.slots + slot * judge.slot_bytes;
  for (int32_t k = 0; k < b->n_args; k++) {
    if (b->args[k].role != TILTH_OUTPUT) continue;
    memcpy(at, b->pointers[k], b->args[k].bytes);
    at += slot_aligned(b->args[k].bytes);
  }
}

int judge_examine(struct bench *b, const struct loaded *l, const struct judge_word *w) {
  if (w->slot >= judge.n || w->n > judge.n - w->slot) {
    report_error("there are no slots %llu to %llu", (unsigned long long)w->slot, (unsigned long long)(w->slot + w->n));
    return -1;
  }
  for (uint64_t k = 0; k < w->n; k++) {
    bench_fill(b, w->seed + k * NEXT_SET);
    bench_warm(b);
    if (l) bench_run(b, l);
    bench_collect(b);
    judge_hand_in(b, w->slot + k);
  }
  return 0;
}
