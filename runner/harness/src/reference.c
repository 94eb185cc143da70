/* The expected results: computed once, by a process that loads no candidate, and kept in a file, because large ones take as long as
 * measuring dozens of candidates. Processes with candidates see them where nothing can write: the file is not open for writing. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { ALIGNED = 64 };
static const char magic[16] = "tilth-results 2\n";

struct header {
  char magic[16];
  uint64_t seed;
  int64_t bytes; /* of all that follows */
  char reserved[32];
};

static int64_t aligned(int64_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

static struct header header_of(const struct bench *b) {
  struct header h = {.seed = b->options->seed};
  memcpy(h.magic, magic, sizeof magic);
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_OUTPUT) h.bytes += aligned(b->args[k].bytes);
  return h;
}

int bench_expect_results(struct bench *b) {
  struct header want = header_of(b);
  struct stat file;
  if (fstat(b->options->results_fd, &file) || file.st_size != (off_t)(sizeof want + want.bytes)) return -1;
  const unsigned char *all = mmap(NULL, file.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, b->options->results_fd, 0);
  if (all == MAP_FAILED) return -1;
  if (memcmp(all, &want, sizeof want)) return munmap((void *)all, file.st_size), -1;
  close(b->options->results_fd);
  all += sizeof want;
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->args[k].role == TILTH_OUTPUT) b->expected[k] = all, all += aligned(b->args[k].bytes);
  return 0;
}

static int put_bytes(int fd, const void *data, int64_t bytes) {
  const char *p = data;
  while (bytes > 0) {
    ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      report_error("writing the results of the reference: %s", strerror(n ? errno : EIO));
      return -1;
    }
    p += n, bytes -= n;
  }
  return 0;
}

static int write_results(const struct bench *b) {
  static const char padding[ALIGNED];
  int fd = b->options->results_fd;
  struct header h = header_of(b);
  if (put_bytes(fd, &h, sizeof h)) return -1;
  for (int32_t k = 0; k < b->n_args; k++) {
    if (b->args[k].role != TILTH_OUTPUT) continue;
    int64_t bytes = b->args[k].bytes;
    if (put_bytes(fd, b->pointers[k], bytes) || put_bytes(fd, padding, aligned(bytes) - bytes)) return -1;
  }
  return 0;
}

int bench_compute(struct bench *b, const struct tilth_kernel *kernel) {
  struct loaded l = {0};
  struct buffer scratch = {0};
  if (bench_load(b, &l, kernel, &scratch)) return -1;
  bench_run(b, &l);
  buffer_close(&scratch);
  return write_results(b);
}
