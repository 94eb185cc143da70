#include "boardlink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* How long answers take at most, but those of calls, in seconds, and the first greeting; and what each byte of a request adds to that: an
 * emulator, which hands over single bytes, takes long for them on a busy machine. */
#define PATIENCE 20.0
#define FIRST_PATIENCE 1.0
#define BYTE_PATIENCE 5e-3

void boardlink_open(struct boardlink *l, int fd, uint32_t session) {
  *l = (struct boardlink){.fd = fd, .session = session};
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  link_crc_table(l->crc);
}

static uint32_t word_at(const unsigned char *p, int word) {
  uint32_t w;
  memcpy(&w, p + 4 * word, 4);
  return w;
}

static int is_header(const struct boardlink *l) {
  return word_at(l->in, LINK_AT_MAGIC) == LINK_MAGIC && word_at(l->in, LINK_AT_CRC) == link_crc(l->crc, 0, l->in, 4 * LINK_AT_CRC) &&
         word_at(l->in, LINK_AT_BYTES) <= LINK_PAYLOAD;
}

/* Drops the first bytes of `in`, up to where a frame may begin. */
static void drop(struct boardlink *l, uint32_t bytes) {
  while (bytes < l->got && l->in[bytes] != (LINK_MAGIC & 0xFF)) bytes++;
  memmove(l->in, l->in + bytes, l->got - bytes);
  l->got -= bytes;
}

int boardlink_take(struct boardlink *l, const unsigned char *data, uint32_t bytes, uint32_t *used) {
  drop(l, l->frame);
  l->frame = 0;
  for (*used = 0;;) {
    while (l->got >= LINK_HEADER && !is_header(l)) drop(l, 1);
    uint32_t whole = l->got < LINK_HEADER ? LINK_HEADER : LINK_HEADER + word_at(l->in, LINK_AT_BYTES) + 4;
    if (l->got >= whole && l->got >= LINK_HEADER) { /* with more behind it, where another that was none held both */
      uint32_t payload = whole - LINK_HEADER - 4, crc;
      memcpy(&crc, l->in + whole - 4, 4);
      if (crc == link_crc(l->crc, 0, l->in + LINK_HEADER, payload)) {
        l->frame = whole;
        return 1;
      }
      drop(l, 1);
      continue;
    }
    uint32_t more = whole - l->got < bytes - *used ? whole - l->got : bytes - *used;
    if (more == 0) return 0;
    memcpy(l->in + l->got, data + *used, more);
    l->got += more, *used += more;
  }
}

static int wait_for(int fd, short event, double until) {
  for (;;) {
    double left = until - seconds_now();
    struct pollfd p = {fd, event, 0};
    int n = poll(&p, 1, left > 0 ? (int)(1e3 * left) + 1 : 0);
    if (n > 0) return p.revents & event ? 0 : -1;
    if (n == 0 || errno != EINTR) return -1;
  }
}

static int send_all(struct boardlink *l, const void *data, uint32_t bytes, double until) {
  for (const unsigned char *p = data; bytes > 0;) {
    if (wait_for(l->fd, POLLOUT, until)) return -1;
    ssize_t n = write(l->fd, p, bytes);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
    if (n > 0) p += n, bytes -= (uint32_t)n;
  }
  return 0;
}

/* Waits for the answer to the last request; what else arrives is old. */
static int receive(struct boardlink *l, uint32_t op, uint32_t least, double until) {
  static unsigned char data[4096];
  static uint32_t have, at;
  for (;;) {
    uint32_t used;
    int whole = boardlink_take(l, data + at, have - at, &used);
    at += used;
    if (whole) {
      uint32_t bytes = word_at(l->in, LINK_AT_BYTES);
      if (word_at(l->in, LINK_AT_SESSION) != l->session || word_at(l->in, LINK_AT_NUMBER) != l->number || word_at(l->in, LINK_AT_OP) != op || bytes < 4)
        continue;
      uint32_t status = word_at(l->in, LINK_HEADER_WORDS);
      if (status == LINK_STALE) return BOARDLINK_STALE;
      l->answer = bytes;
      return status == LINK_OK && bytes >= least ? BOARDLINK_OK : BOARDLINK_REFUSED;
    }
    if (wait_for(l->fd, POLLIN, until)) return BOARDLINK_SILENT;
    ssize_t n = read(l->fd, data, sizeof data);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return BOARDLINK_SILENT;
    have = n > 0 ? (uint32_t)n : 0, at = 0;
  }
}

int boardlink_ask(struct boardlink *l, uint32_t op, const void *payload, uint32_t bytes, uint32_t least, double seconds) {
  static unsigned char out[LINK_HEADER + LINK_PAYLOAD + 4];
  uint32_t header[LINK_HEADER_WORDS] = {LINK_MAGIC, l->session, ++l->number, op, bytes}, crc = link_crc(l->crc, 0, payload, bytes);
  double until = seconds_now() + (seconds > 0 ? seconds : PATIENCE) + BYTE_PATIENCE * bytes;
  header[LINK_AT_CRC] = link_crc(l->crc, 0, header, 4 * LINK_AT_CRC);
  memcpy(out, header, LINK_HEADER);
  if (bytes > 0) memcpy(out + LINK_HEADER, payload, bytes);
  memcpy(out + LINK_HEADER + bytes, &crc, 4);
  if (send_all(l, out, LINK_HEADER + bytes + 4, until)) return BOARDLINK_SILENT;
  return receive(l, op, least, until);
}

int boardlink_interrupt(struct boardlink *l, uint32_t op, uint32_t least) {
  double until = seconds_now() + PATIENCE;
  return send_all(l, "", 1, until) ? BOARDLINK_SILENT : receive(l, op, least, until);
}

const void *boardlink_answer(const struct boardlink *l) { return l->in + LINK_HEADER; }

int boardlink_begin(struct boardlink *l, struct link_hello *hello) {
  static const unsigned char nothing[LINK_HEADER + LINK_PAYLOAD + 4];
  int how = boardlink_ask(l, LINK_HELLO, NULL, 0, sizeof *hello, FIRST_PATIENCE);
  if (how == BOARDLINK_SILENT) { /* a frame that was cut short wants at most so many bytes yet */
    double patience = PATIENCE + BYTE_PATIENCE * sizeof nothing;
    if (send_all(l, nothing, sizeof nothing, seconds_now() + patience)) return BOARDLINK_SILENT;
    how = boardlink_ask(l, LINK_HELLO, NULL, 0, sizeof *hello, patience);
  }
  if (how != BOARDLINK_OK) return how;
  memcpy(hello, boardlink_answer(l), sizeof *hello);
  hello->board[LINK_NAME - 1] = hello->digest[LINK_DIGEST - 1] = 0;
  for (char *p = hello->board; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return BOARDLINK_OK;
}
