/* The expected results: computed once by the reference kernel and kept in a file, because a large one takes as long as
 * measuring dozens of candidates. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static const char magic[16] = "tilth-results 1\n";

struct header {
  char magic[16];
  uint64_t seed;
  int64_t bytes; /* of all results together */
};

static struct header header_of(const struct bench *b) {
  struct header h = {.seed = b->options->seed};
  memcpy(h.magic, magic, sizeof magic);
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->expected[k]) h.bytes += b->args[k].bytes;
  return h;
}

/* 0 when the file held results of this workload's size and seed. */
static int read_cache(struct bench *b, const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return -1;
  struct header want = header_of(b), have;
  int ok = fread(&have, sizeof have, 1, f) == 1 && memcmp(&have, &want, sizeof want) == 0;
  for (int32_t k = 0; ok && k < b->n_args; k++)
    if (b->expected[k]) ok = fread(b->expected[k], 1, b->args[k].bytes, f) == (size_t)b->args[k].bytes;
  ok = ok && fgetc(f) == EOF;
  fclose(f);
  return ok ? 0 : -1;
}

/* A cache that cannot be written costs time later, nothing else; it never appears half written. */
static void write_cache(const struct bench *b, const char *path) {
  char temporary[4096];
  if (snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid()) >= (int)sizeof temporary) return;
  FILE *f = fopen(temporary, "wb");
  if (!f) return;
  struct header h = header_of(b);
  int ok = fwrite(&h, sizeof h, 1, f) == 1;
  for (int32_t k = 0; ok && k < b->n_args; k++)
    if (b->expected[k]) ok = fwrite(b->expected[k], 1, b->args[k].bytes, f) == (size_t)b->args[k].bytes;
  ok = fclose(f) == 0 && ok;
  if (!ok || rename(temporary, path)) unlink(temporary);
}

int bench_reference(struct bench *b, const struct tilth_kernel *kernel) {
  const char *cache = b->options->reference_cache;
  if (cache && read_cache(b, cache) == 0) return 0;
  struct loaded l = {0};
  struct buffer scratch = {0};
  if (bench_load(b, &l, kernel, &scratch)) return -1;
  bench_run(b, &l);
  for (int32_t k = 0; k < b->n_args; k++)
    if (b->expected[k]) memcpy(b->expected[k], b->pointers[k], b->args[k].bytes);
  buffer_close(&scratch);
  if (cache) write_cache(b, cache);
  return 0;
}
