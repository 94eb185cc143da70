#define _GNU_SOURCE
#include "weights.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

/* Maps the weights in place: they are shared with other processes and come in as they are used. */
static int map_file(struct tilth_weights *w, int fd, const char *path, int64_t offset) {
  struct stat s;
  if (fstat(fd, &s)) return tilth_fail("reading %s: %s", path, strerror(errno));
  if (offset < 0 || offset % 64 || s.st_size - offset < tilth_plan.weights_bytes)
    return tilth_fail("%s does not hold this model's weights: %lld bytes are needed at offset %lld, the file has %lld", path,
                      (long long)tilth_plan.weights_bytes, (long long)offset, (long long)s.st_size);
  int64_t skip = offset % sysconf(_SC_PAGESIZE);
  w->mapped_bytes = tilth_plan.weights_bytes + skip;
  w->mapped = mmap(NULL, w->mapped_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, offset - skip);
  if (w->mapped == MAP_FAILED) {
    w->mapped = NULL;
    return tilth_fail("mapping %s: %s", path, strerror(errno));
  }
  w->data = (char *)w->mapped + skip;
  return 0;
}

int tilth_weights_map(struct tilth_weights *w, const char *path, int64_t offset) {
  if (tilth_plan.weights_bytes == 0) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return tilth_fail("opening %s: %s", path, strerror(errno));
  int result = map_file(w, fd, path, offset);
  close(fd);
  return result;
}

void tilth_weights_unmap(struct tilth_weights *w) {
  if (w->mapped) munmap(w->mapped, w->mapped_bytes);
  *w = (struct tilth_weights){0};
}
