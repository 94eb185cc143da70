/* Stands in for nvJitLink: code is its flags, and the PTX behind them. It refuses what has the word "refused". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char flags[256];
  char *text, words[256];
} link;

int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  *major = 12, *minor = 4;
  return 0;
}

int nvJitLinkCreate(link **to, uint32_t n, const char **flag) {
  link *l = calloc(1, sizeof *l);
  for (uint32_t k = 0; k < n; k++) {
    if (strncmp(flag[k], "-arch=", 6)) return 1;
    strcat(strcat(l->flags, flag[k]), "\n");
  }
  *to = l;
  return 0;
}

int nvJitLinkAddData(link *l, int kind, const void *data, size_t bytes, const char *name) {
  if (kind != 2 || ((const char *)data)[bytes - 1]) return 3;
  l->text = strdup(data);
  if (!strstr(l->text, "refused")) return 0;
  snprintf(l->words, sizeof l->words,
           "ptxas %s, line 3; error   : Unknown symbol 'refused'\nptxas fatal   : Ptx assembly aborted\n", name);
  return 4;
}

int nvJitLinkComplete(link *l) { return l->text ? 0 : 6; }
int nvJitLinkGetLinkedCubinSize(link *l, size_t *bytes) {
  *bytes = strlen(l->flags) + strlen(l->text);
  return 0;
}
int nvJitLinkGetLinkedCubin(link *l, void *code) {
  memcpy(code, l->flags, strlen(l->flags));
  memcpy((char *)code + strlen(l->flags), l->text, strlen(l->text));
  return 0;
}
int nvJitLinkGetErrorLogSize(link *l, size_t *bytes) {
  *bytes = strlen(l->words);
  return 0;
}
int nvJitLinkGetErrorLog(link *l, char *words) {
  memcpy(words, l->words, strlen(l->words));
  return 0;
}
