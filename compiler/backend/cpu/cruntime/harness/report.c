#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, TEXT_BYTES = 512, WORD_BYTES = 64 };
static int report_fd = -1;
static char report_word[WORD_BYTES + 1];

static void read_word(void) {
  for (ssize_t have = 0, n; have < WORD_BYTES; have += n) {
    n = read(STDIN_FILENO, report_word + have, WORD_BYTES - have);
    if (n <= 0) return;
  }
}

int report_open(void) {
  read_word();
  report_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100); /* far from the numbers a stray write() would hit */
  return report_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? errno : 0;
}

static void put(const char *line, int length) {
  while (length > 0) {
    ssize_t n = write(report_fd, line, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(2); /* nobody listens any more */
    line += n, length -= (int)n;
  }
}

/* Escapes text for a JSON string; what does not fit is dropped. */
static const char *escape(char *out, const char *text) {
  char *p = out;
  for (; text && *text && p < out + TEXT_BYTES - 8; text++) {
    if (*text == '"' || *text == '\\') *p++ = '\\';
    *p++ = (unsigned char)*text < ' ' ? ' ' : *text;
  }
  *p = 0;
  return out;
}

static void put_text(const char *text) { put(text, (int)strlen(text)); }

void report_module(const struct tilth_kernel *const *kernels, const int32_t *modules, int32_t n) {
  char name[TEXT_BYTES];
  put_text(report_word);
  put_text("{\"event\":\"module\",\"kernels\":[");
  for (int32_t k = 0; k < n; k++) {
    put_text(k ? ",\"" : "\"");
    put_text(escape(name, kernels[k]->id));
    put_text("\"");
  }
  put_text("],\"modules\":[");
  for (int32_t k = 0; k < n; k++) put(name, snprintf(name, sizeof name, k ? ",%d" : "%d", modules[k]));
  put_text("]}\n");
}

void report_ready(void) {
  put_text(report_word);
  put_text("{\"event\":\"ready\"}\n");
}

void report_load(int32_t module) {
  char line[LINE_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"load\",\"index\":%d}\n", report_word, module));
}

void report_workload(const struct tilth_arg *args, int32_t n) {
  char line[LINE_BYTES], name[TEXT_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"workload\",\"args\":[", report_word));
  for (int32_t k = 0; k < n; k++)
    put(line, snprintf(line, sizeof line,
                       "%s{\"name\":\"%.64s\",\"elements\":%lld,\"bytes\":%lld,\"dtype\":%d,\"role\":%d,\"tolerance\":%.9g,\"rounding\":%.9g,\"most\":%lld}",
                       k ? "," : "", escape(name, args[k].name), (long long)args[k].elements, (long long)args[k].bytes, args[k].dtype, args[k].role,
                       args[k].tolerance, args[k].rounding, (long long)args[k].points[TILTH_POINTS - 1]));
  put_text("]}\n");
}

void report_ran(int32_t index, double growth) {
  char line[LINE_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"ran\",\"index\":%d,\"growth\":%.9g}\n", report_word, index, isfinite(growth) ? growth : 0));
}

static void report_turn(const char *event, int32_t index) {
  char line[LINE_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"%s\",\"index\":%d}\n", report_word, event, index));
}

void report_start(int32_t index) { report_turn("start", index); }

void report_sustain(int32_t index) { report_turn("sustain", index); }

void report_sustained(int32_t index) { report_turn("sustained", index); }

void report_outcome(int32_t index, const char *id, const struct outcome *o) {
  char line[LINE_BYTES], text[TEXT_BYTES], name[TEXT_BYTES];
  int n = snprintf(line, sizeof line, "%s{\"event\":\"outcome\",\"index\":%d,\"kernel\":\"%s\",\"status\":\"%s\",\"message\":\"%s\",\"run_seconds\":%.9g,",
                   report_word, index, escape(name, id), o->status, escape(text, o->message), o->run_seconds);
  n += snprintf(line + n, sizeof line - n, "\"samples\":[");
  for (int k = 0; k < o->n_samples; k++) n += snprintf(line + n, sizeof line - n, "%s%.9g", k ? "," : "", o->samples[k]);
  put(line, n + snprintf(line + n, sizeof line - n, "]}\n"));
}

void report_calibration(double seconds, double patience) {
  char line[LINE_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"calibration\",\"seconds\":%.9g,\"patience_seconds\":%.9g}\n", report_word, seconds, patience));
}

static void report_end(const char *event, int32_t index, const char *message) {
  char line[LINE_BYTES], text[TEXT_BYTES];
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"%s\",\"index\":%d,\"message\":\"%s\"}\n", report_word, event, index, escape(text, message)));
}

void report_fault(int32_t index, const char *message) { report_end("fault", index, message); }

void report_timeout(int32_t index, const char *message) { report_end("timeout", index, message); }

void report_lost(const char *message) { report_end("lost", -1, message); }

static void report_why(const char *event, const char *format, va_list args) {
  char line[LINE_BYTES], text[TEXT_BYTES], message[TEXT_BYTES];
  vsnprintf(message, sizeof message, format, args);
  put(line, snprintf(line, sizeof line, "%s{\"event\":\"%s\",\"message\":\"%s\"}\n", report_word, event, escape(text, message)));
}

void report_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  report_why("error", format, args);
  va_end(args);
}

void report_too_large(const char *format, ...) {
  va_list args;
  va_start(args, format);
  report_why("too-large", format, args);
  va_end(args);
}

void report_done(void) {
  put_text(report_word);
  put_text("{\"event\":\"done\"}\n");
}
