/* The monitor of a board: what the host asks for, it does, and nothing else. It keeps no state but the session. */
#include "monitor.h"

static struct {
  uint32_t crc[16], session;
  uint32_t header[LINK_HEADER_WORDS];
  uint32_t payload[LINK_PAYLOAD / 4 + 2];
} m;

/* The compiler calls these for what it does not do in place. */
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n) {
  for (__SIZE_TYPE__ k = 0; k < n; k++) ((volatile unsigned char *)to)[k] = ((const unsigned char *)from)[k];
  return to;
}

void *memset(void *to, int value, __SIZE_TYPE__ n) {
  for (__SIZE_TYPE__ k = 0; k < n; k++) ((volatile unsigned char *)to)[k] = (unsigned char)value;
  return to;
}

static void receive(void *to, uint32_t bytes) {
  for (unsigned char *p = to; bytes--;) *p++ = board_receive();
}

static void send(const void *from, uint32_t bytes) {
  for (const unsigned char *p = from; bytes--;) board_send(*p++);
}

static int is_header(void) {
  return m.header[LINK_AT_MAGIC] == LINK_MAGIC && m.header[LINK_AT_CRC] == link_crc(m.crc, 0, m.header, 4 * LINK_AT_CRC) &&
         m.header[LINK_AT_BYTES] <= LINK_PAYLOAD;
}

/* Waits for a frame that arrived whole. */
static void next_frame(void) {
  unsigned char *h = (unsigned char *)m.header;
  for (;;) {
    receive(h, LINK_HEADER);
    while (!is_header()) {
      for (int k = 0; k + 1 < LINK_HEADER; k++) h[k] = h[k + 1];
      h[LINK_HEADER - 1] = board_receive();
    }
    uint32_t bytes = m.header[LINK_AT_BYTES], crc;
    receive(m.payload, bytes);
    receive(&crc, sizeof crc);
    if (crc == link_crc(m.crc, 0, m.payload, bytes)) return;
  }
}

static void answer(const void *payload, uint32_t bytes) {
  uint32_t crc = link_crc(m.crc, 0, payload, bytes);
  m.header[LINK_AT_BYTES] = bytes;
  m.header[LINK_AT_CRC] = link_crc(m.crc, 0, m.header, 4 * LINK_AT_CRC);
  send(m.header, LINK_HEADER), send(payload, bytes), send(&crc, sizeof crc);
}

static void say(uint32_t status) { answer(&status, sizeof status); }

/* What the monitor keeps of the candidates' memory for what a call returns to. */
#define KEPT 64u

static int is_inside(uint32_t address, uint32_t bytes) {
  uint32_t at = address - BOARD_MEMORY;
  return address >= BOARD_MEMORY + KEPT && at <= BOARD_MEMORY_BYTES && bytes <= BOARD_MEMORY_BYTES - at;
}

static void hello(void) {
  static const char digest[] = MONITOR_DIGEST;
  struct link_hello h = {.version = LINK_VERSION, .memory = BOARD_MEMORY + KEPT, .memory_bytes = BOARD_MEMORY_BYTES - KEPT,
                         .clock_low = (uint32_t)BOARD_CLOCK, .clock_high = (uint32_t)(BOARD_CLOCK >> 32), .counter = core_counter(),
                         .board = BOARD_NAME};
  memcpy(h.digest, digest, LINK_DIGEST);
  m.session = m.header[LINK_AT_SESSION];
  answer(&h, sizeof h);
}

/* What a call needs of its stack to begin. */
#define STACK_LEAST 64u

static void call(void) {
  struct link_called r = {0};
  const struct link_call *c = (const struct link_call *)m.payload;
  if (!is_inside(c->entry & ~1u, 2) || !is_inside(c->stack - STACK_LEAST, STACK_LEAST)) {
    say(LINK_BOUNDS);
    return;
  }
  core_call(c, &r);
  answer(&r, sizeof r);
}

static void read(uint32_t address, uint32_t bytes) {
  static uint32_t out[LINK_PAYLOAD / 4 + 1];
  memcpy(out + 1, (const void *)(uintptr_t)address, bytes);
  answer(out, 4 + bytes);
}

/* Requests of memory, whose first two words are an address and, but for LINK_WRITE, a length. */
static void memory(uint32_t op, uint32_t bytes) {
  uint32_t address = m.payload[0], length = op == LINK_WRITE ? bytes - 4 : m.payload[1];
  unsigned char *at = (unsigned char *)(uintptr_t)address;
  if (!is_inside(address, length) || (op == LINK_READ && length > LINK_PAYLOAD - 4)) {
    say(LINK_BOUNDS);
    return;
  }
  if (op == LINK_READ) {
    read(address, length);
    return;
  }
  uint32_t sum[2] = {LINK_OK, 0};
  if (op == LINK_WRITE) memcpy(at, m.payload + 1, length);
  if (op == LINK_FILL) memset(at, (int)m.payload[2], length);
  if (op == LINK_SUM) sum[1] = link_crc(m.crc, 0, at, length);
  answer(sum, op == LINK_SUM ? 8 : 4);
}

/* The bytes of a request's payload; at least so many for LINK_WRITE. */
static uint32_t wanted(uint32_t op) {
  static const uint32_t bytes[] = {0, 0, 4, 12, 8, 8, sizeof(struct link_call)};
  return bytes[op];
}

static void serve(void) {
  uint32_t op = m.header[LINK_AT_OP], bytes = m.header[LINK_AT_BYTES];
  if (op < LINK_HELLO || op > LINK_CALL || (op == LINK_WRITE ? bytes < wanted(op) : bytes != wanted(op))) say(LINK_BAD);
  else if (op == LINK_HELLO) hello();
  else if (m.header[LINK_AT_SESSION] != m.session) say(LINK_STALE);
  else if (op == LINK_CALL) call();
  else memory(op, bytes);
}

void monitor(void) {
  link_crc_table(m.crc);
  core_open();
  board_open();
  for (;;) {
    next_frame();
    serve();
  }
}
