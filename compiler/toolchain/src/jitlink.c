/* jitlink LIBRARY --version
 * jitlink LIBRARY FLAG... SOURCE -o OUTPUT
 *
 * Prints the version of nvJitLink, or uses it to compile a PTX file for a card. Errors go to standard error, and the exit
 * status is then 1. The names and numbers are those of its interface since version 12.0, which reports its version since
 * 12.3. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct link link;
enum { INPUT_PTX = 2, MOST_FLAGS = 16 };

static struct {
  int (*version)(unsigned *major, unsigned *minor);
  int (*create)(link **, uint32_t flags, const char **flag);
  int (*add)(link *, int kind, const void *data, size_t bytes, const char *name);
  int (*complete)(link *);
  int (*code_bytes)(link *, size_t *);
  int (*code)(link *, void *);
  int (*log_bytes)(link *, size_t *);
  int (*log)(link *, char *);
} jit;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "error: %s: %s\n", what, why);
  exit(1);
}

static void *find(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) fail("nvJitLink is older than 12.3 or broken", dlerror());
  return found;
}

static void open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("opening nvJitLink", dlerror());
  *(void **)&jit.version = find(library, "nvJitLinkVersion");
  *(void **)&jit.create = find(library, "nvJitLinkCreate");
  *(void **)&jit.add = find(library, "nvJitLinkAddData");
  *(void **)&jit.complete = find(library, "nvJitLinkComplete");
  *(void **)&jit.code_bytes = find(library, "nvJitLinkGetLinkedCubinSize");
  *(void **)&jit.code = find(library, "nvJitLinkGetLinkedCubin");
  *(void **)&jit.log_bytes = find(library, "nvJitLinkGetErrorLogSize");
  *(void **)&jit.log = find(library, "nvJitLinkGetErrorLog");
}

/* The text of a file, with a zero behind it. */
static char *text_of(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail("reading", path);
  long bytes = ftell(file);
  char *text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
  if (!text) fail("out of memory", path);
  rewind(file);
  if (fread(text, 1, (size_t)bytes, file) != (size_t)bytes) fail("reading", path);
  fclose(file);
  text[bytes] = 0;
  return text;
}

/* Ends with the library's own words for what it refused. */
static void refuse(link *l, int status) {
  size_t bytes = 0;
  char *words = NULL;
  if (!jit.log_bytes(l, &bytes) && bytes > 0 && (words = calloc(bytes + 1, 1)) && !jit.log(l, words)) {
    fputs(words, stderr);
  } else {
    fprintf(stderr, "error: nvJitLink gives up with status %d\n", status);
  }
  exit(1);
}

static void assemble(int flags, char **flag, const char *source, const char *output) {
  const char *all[MOST_FLAGS];
  link *l;
  size_t bytes;
  int status;
  for (int k = 0; k < flags; k++) all[k] = flag[k];
  if ((status = jit.create(&l, (uint32_t)flags, all))) {
    fprintf(stderr, "error: nvJitLink takes none of these flags, or not all: status %d\n", status);
    exit(1);
  }
  char *text = text_of(source);
  if ((status = jit.add(l, INPUT_PTX, text, strlen(text) + 1, source)) || (status = jit.complete(l)) ||
      (status = jit.code_bytes(l, &bytes))) {
    refuse(l, status);
  }
  char *code = malloc(bytes);
  if (!code) fail("out of memory", output);
  if ((status = jit.code(l, code))) refuse(l, status);
  FILE *file = fopen(output, "wb");
  if (!file || fwrite(code, 1, bytes, file) != bytes || fclose(file)) fail("writing", output);
}

int main(int count, char **arg) {
  if (count == 3 && !strcmp(arg[2], "--version")) {
    unsigned major = 0, minor = 0;
    open_library(arg[1]);
    if (jit.version(&major, &minor)) fail("nvJitLink", "it does not tell its version");
    printf("V%u.%u\n", major, minor);
    return 0;
  }
  if (count < 5 || count > 5 + MOST_FLAGS || strcmp(arg[count - 2], "-o")) {
    fail("usage", "jitlink LIBRARY --version, or jitlink LIBRARY FLAG... SOURCE -o OUTPUT");
  }
  open_library(arg[1]);
  assemble(count - 5, arg + 2, arg[count - 3], arg[count - 1]);
  /* The library's own threads and memory end with the process. */
  fflush(stdout);
  _Exit(0);
}
