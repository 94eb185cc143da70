/* The host's side of a link to a board: see link.h. Nothing that the board says is trusted. */
#ifndef TILTH_BOARDLINK_H
#define TILTH_BOARDLINK_H
#include "link.h"

struct boardlink {
  int fd;
  uint32_t session, number;
  uint32_t crc[16];
  unsigned char in[LINK_HEADER + LINK_PAYLOAD + 4];
  uint32_t got;    /* bytes of `in` */
  uint32_t frame;  /* those of the frame that was taken last */
  uint32_t answer; /* bytes of the last answer's payload, which are in `in` behind a header */
};

/* How a request went: answered, by the monitor with another session's number, or not at all, with a message. */
enum { BOARDLINK_OK, BOARDLINK_STALE, BOARDLINK_SILENT, BOARDLINK_REFUSED };

void boardlink_open(struct boardlink *l, int fd, uint32_t session);

/* Sends a request and waits for its answer, whose payload has at least `least` bytes, for so many seconds. */
int boardlink_ask(struct boardlink *l, uint32_t op, const void *payload, uint32_t bytes, uint32_t least, double seconds);

/* Ends the call that was asked for last, and waits for its answer, as boardlink_ask does. */
int boardlink_interrupt(struct boardlink *l, uint32_t op, uint32_t least);

/* The answer's payload. */
const void *boardlink_answer(const struct boardlink *l);

/* Begins the session, also with a board that is in the middle of something. */
int boardlink_begin(struct boardlink *l, struct link_hello *hello);

/* Takes bytes that arrived. Returns 1 when a frame is whole, which then begins `in` until the next call; 0 when more is
 * needed. */
int boardlink_take(struct boardlink *l, const unsigned char *data, uint32_t bytes, uint32_t *used);

#endif
