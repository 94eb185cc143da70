/* What a board's monitor and its host say to each other, in frames: HEADER words, a payload, and a CRC of the payload. All numbers are
 * little-endian. The host asks, the monitor answers each frame by one of the same number, and says nothing unasked. What follows LINK_MAGIC and
 * fits its own CRC is a header; whatever else arrives is skipped, so both sides find the next frame after noise. */
#ifndef TILTH_LINK_H
#define TILTH_LINK_H
#include <stdint.h>

#define LINK_VERSION 1
#define LINK_MAGIC UINT32_C(0x314b4c54) /* "TLK1" */

/* The words of a header. */
enum { LINK_AT_MAGIC, LINK_AT_SESSION, LINK_AT_NUMBER, LINK_AT_OP, LINK_AT_BYTES, LINK_AT_CRC, LINK_HEADER_WORDS };
enum { LINK_HEADER = 4 * LINK_HEADER_WORDS, LINK_PAYLOAD = 4096, LINK_NAME = 32, LINK_DIGEST = 16 };

/* What the host asks. Payloads are words, and for LINK_WRITE bytes behind them. */
enum {
  LINK_HELLO = 1, /* begins the session of the header, and ends any other. -> struct link_hello */
  LINK_WRITE,     /* address, bytes... */
  LINK_FILL,      /* address, length, value of each byte */
  LINK_READ,      /* address, length -> bytes */
  LINK_SUM,       /* address, length -> CRC */
  LINK_CALL,      /* struct link_call -> struct link_called */
};

/* How an answer begins: its first word. */
enum {
  LINK_OK,
  LINK_STALE,  /* another session has begun since: what was written before may be gone */
  LINK_BAD,    /* no such request */
  LINK_BOUNDS, /* memory that is not the candidates' */
};

struct link_hello {
  uint32_t status, version;
  uint32_t memory, memory_bytes;   /* the candidates', which alone they may touch */
  uint32_t clock_low, clock_high;  /* ticks of the counter in a second */
  uint32_t counter;                /* LINK_CYCLES or LINK_TIMER */
  char board[LINK_NAME], digest[LINK_DIGEST]; /* ends with zeros; of the monitor's sources */
};

/* What is counted: cycles of the processor, or ticks of a timer beside it. */
enum { LINK_CYCLES = 1, LINK_TIMER = 2 };

struct link_call {
  uint32_t entry, arguments[4];
  uint32_t stack;     /* its end */
  uint32_t deadline_low, deadline_high; /* ticks */
  uint32_t cold;      /* whether the caches are emptied before */
};

/* How a call ended. */
enum { LINK_RETURNED, LINK_FAULT, LINK_DEADLINE, LINK_INTERRUPTED };

struct link_called {
  uint32_t status, ending;
  uint32_t ticks_low, ticks_high;
  uint32_t cause, pc, address; /* of a fault: the processor's own words */
};

/* CRC-32 as in zlib, of parts one after the other; the first begins with 0. The table has 16 words. */
static inline void link_crc_table(uint32_t *table) {
  for (uint32_t k = 0; k < 16; k++) {
    uint32_t c = k;
    for (int bit = 0; bit < 4; bit++) c = c & 1 ? c >> 1 ^ UINT32_C(0xEDB88320) : c >> 1;
    table[k] = c;
  }
}

static inline uint32_t link_crc(const uint32_t *table, uint32_t crc, const void *data, uint32_t bytes) {
  const unsigned char *p = data;
  crc = ~crc;
  while (bytes--) {
    crc ^= *p++;
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

#endif
