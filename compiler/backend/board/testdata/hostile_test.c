/* Feeds what reads from boards and from builders with streams and files that were spoilt in all kinds of ways, as a generator of random
 * numbers says. Sanitizers tell of what it does wrong; the rest is checked here. usage: hostile_test ROUNDS SEED MODULE... */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "boardlink.h"
#include "boardmodule.h"

double seconds_now(void) { return 0; }

static uint64_t state;

static uint32_t any(uint32_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (uint32_t)(state >> 16) % below;
}

static void require(int what, const char *message) {
  if (what) return;
  fprintf(stderr, "%s\n", message);
  exit(1);
}

/* Changes some bytes: to any, by one bit, or to what lengths are wrong by. */
static void spoil(unsigned char *p, uint32_t bytes) {
  static const uint32_t words[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, LINK_PAYLOAD, LINK_PAYLOAD + 1, LINK_MAGIC};
  for (uint32_t n = any(6) + 1; n-- > 0 && bytes >= 4;) {
    uint32_t at = any(bytes - 3), what = any(3);
    if (what == 0) p[at] = (unsigned char)any(256);
    else if (what == 1) p[at] ^= 1 << any(8);
    else memcpy(p + at, &words[any(sizeof words / sizeof *words)], 4);
  }
}

/* A frame, as the board would send it. */
static uint32_t frame(const uint32_t *crc, unsigned char *out, uint32_t number) {
  uint32_t bytes = any(4) ? any(64) : any(LINK_PAYLOAD + 1), header[LINK_HEADER_WORDS] = {LINK_MAGIC, 7, number, 1 + any(6), bytes};
  header[LINK_AT_CRC] = link_crc(crc, 0, header, 4 * LINK_AT_CRC);
  memcpy(out, header, LINK_HEADER);
  for (uint32_t k = 0; k < bytes; k++) out[LINK_HEADER + k] = (unsigned char)(any(8) ? any(256) : LINK_MAGIC);
  uint32_t sum = link_crc(crc, 0, out + LINK_HEADER, bytes);
  memcpy(out + LINK_HEADER + bytes, &sum, 4);
  return LINK_HEADER + bytes + 4;
}

enum { FRAMES = 6, STREAM = FRAMES * (LINK_HEADER + LINK_PAYLOAD + 4) };

/* Whatever arrives, in whatever parts, only whole frames are taken; those that follow what is none are found. */
static void take(void) {
  static unsigned char stream[STREAM + LINK_HEADER + LINK_PAYLOAD + 4];
  static struct boardlink l;
  uint32_t bytes = 0, used, last = 0;
  boardlink_open(&l, -1, 7);
  for (uint32_t k = 0; k < FRAMES - 2; k++) {
    uint32_t n = frame(l.crc, stream + bytes, k);
    if (any(3) == 0) spoil(stream + bytes, n);
    bytes += any(8) ? n : any(n); /* or the frame is cut short */
  }
  memset(stream + bytes, 0, LINK_HEADER + LINK_PAYLOAD + 4); /* what ends a frame that was cut short */
  bytes += LINK_HEADER + LINK_PAYLOAD + 4;
  bytes += frame(l.crc, stream + bytes, 1000);
  int whole = 0;
  for (uint32_t at = 0; at < bytes || whole; at += used) {
    uint32_t part = any(4) ? any(64) + 1 : any(8192) + 1;
    if (part > bytes - at) part = bytes - at;
    whole = boardlink_take(&l, stream + at, part, &used);
    require(used <= part && l.got <= sizeof l.in, "more is taken than there is");
    require(whole || used == part, "what arrived is not taken");
    if (!whole) continue;
    uint32_t header[LINK_HEADER_WORDS], sum;
    memcpy(header, l.in, LINK_HEADER);
    require(header[LINK_AT_BYTES] <= LINK_PAYLOAD && l.frame == LINK_HEADER + header[LINK_AT_BYTES] + 4 && l.frame <= l.got, "a frame has another length");
    memcpy(&sum, l.in + l.frame - 4, 4);
    require(sum == link_crc(l.crc, 0, l.in + LINK_HEADER, header[LINK_AT_BYTES]), "a frame does not fit its CRC");
    last = header[LINK_AT_NUMBER];
  }
  require(last == 1000, "the frame behind what is none was not found");
}

static unsigned char *whole_file(const char *path, uint32_t *bytes) {
  FILE *f = fopen(path, "rb");
  require(f != NULL, "a module cannot be opened");
  fseek(f, 0, SEEK_END);
  *bytes = (uint32_t)ftell(f);
  rewind(f);
  unsigned char *all = malloc(*bytes);
  require(all && fread(all, 1, *bytes, f) == *bytes, "a module cannot be read");
  fclose(f);
  return all;
}

/* A file is a module, or is refused. */
static int reads(const unsigned char *all, uint32_t bytes) {
  static char path[64];
  char message[512] = "";
  int fd = memfd_create("module", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  require(fd >= 0 && write(fd, all, bytes) == (ssize_t)bytes, "a file cannot be written");
  struct boardmodule *m = boardmodule_read(path, message, sizeof message);
  close(fd);
  require(m || *message, "there is no message");
  if (m) {
    unsigned char *there = boardmodule_at(m, 0x60000000);
    require(there != NULL, "there is no copy");
    free(there);
  }
  boardmodule_free(m);
  return m != NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  state = strtoull(argv[2], NULL, 0) * UINT64_C(0x9E3779B97F4A7C15) | 1;
  for (long k = atol(argv[1]); k > 0; k--) take();
  for (int which = 3; which < argc; which++) {
    uint32_t bytes;
    unsigned char *all = whole_file(argv[which], &bytes), *spoilt = malloc(bytes);
    require(reads(all, bytes), "a module is refused");
    for (long k = atol(argv[1]); k > 0; k--) {
      uint32_t some = any(4) ? bytes : any(bytes), head = any(2) ? some : some < 512 ? some : 512; /* headers are where lengths are */
      memcpy(spoilt, all, some);
      spoil(spoilt, head);
      reads(spoilt, some);
    }
    free(all), free(spoilt);
  }
  return 0;
}
