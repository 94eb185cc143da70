#define _GNU_SOURCE
#include "image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_ARGUMENTS = 256, IMAGE_LINE = 16 << 10 };
/* Files are larger than this by mistake only. */
#define IMAGE_BYTES (INT64_C(1) << 30)

/* What is left of a file. */
struct text {
  const char *at, *end;
  int line;
};

/* Copies the next line. Returns 0 at the end of the text or if the line is too long. */
static int next_line(struct text *t, char *line) {
  const char *stop = memchr(t->at, '\n', t->end - t->at);
  if (!stop || stop - t->at >= IMAGE_LINE) return 0;
  memcpy(line, t->at, stop - t->at);
  line[stop - t->at] = 0;
  t->at = stop + 1, t->line++;
  return 1;
}

static int read_arg(struct text *t, struct tilth_arg *a) {
  char line[IMAGE_LINE], name[IMAGE_NAME];
  if (!next_line(t, line) || sscanf(line, "arg %127s %" SCNd64 " %" SCNd64 " %" SCNd32 " %" SCNd32 " %lf %lf", name, &a->elements, &a->bytes, &a->dtype,
                                    &a->role, &a->tolerance, &a->rounding) != 7)
    return -1;
  a->name = strdup(name);
  return a->name && a->elements >= 0 && a->bytes >= 0 ? 0 : -1;
}

/* What a candidate's parameters are within: the arguments, and the bytes of its workspace. */
struct bounds {
  const struct tilth_arg *args;
  int32_t n_args;
  int64_t workspace;
};

static int read_pointer(const char **line, const struct bounds *b, struct image_parameter *p) {
  char kind;
  int64_t number;
  int used;
  if (sscanf(*line, " %c%" SCNd64 "%n", &kind, &number, &used) != 2 || number < 0) return -1;
  *line += used;
  p->arg = kind == 'a' ? (int32_t)number : -1, p->offset = number;
  return (kind == 'a' && number < b->n_args) || (kind == 'w' && number < b->workspace) ? 0 : -1;
}

/* The bytes of an element whose boxes can be copied; 0 for others. */
static int64_t box_element(int32_t dtype) {
  switch (dtype) {
    case TILTH_INT8: case TILTH_UINT8: case TILTH_BOOL: return 1;
    case TILTH_FLOAT16: case TILTH_BFLOAT16: case TILTH_INT16: case TILTH_UINT16: return 2;
    case TILTH_FLOAT32: case TILTH_INT32: case TILTH_UINT32: return 4;
    default: return 0;
  }
}

/* Reports whether boxes are within the limits of tensor maps, and their tensor within the given number of bytes. */
static int boxes_fit(const struct tilth_boxes *b, int64_t bytes) {
  int64_t size = box_element(b->dtype);
  if (size == 0 || (b->panel != 32 && b->panel != 64 && b->panel != 128) || b->box[0] * size != b->panel || b->strides[0] != size) return 0;
  if ((bytes -= size) < 0) return 0;
  for (int32_t d = 0; d < b->n; d++) {
    if (d > 0 && (b->strides[d] < 16 || b->strides[d] % 16 || b->strides[d] >= INT64_C(1) << 40)) return 0;
    if (b->extents[d] < 1 || b->extents[d] > INT64_C(1) << 32 || (b->extents[d] - 1) > bytes / b->strides[d]) return 0;
    bytes -= (b->extents[d] - 1) * b->strides[d];
  }
  return 1;
}

static int read_boxes(const char **line, struct tilth_boxes *b) {
  int used;
  if (sscanf(*line, " m %" SCNd32 " %" SCNd32 " %" SCNd32 "%n", &b->dtype, &b->panel, &b->n, &used) != 3 || b->n < 1 || b->n > TILTH_BOX_DIMENSIONS) return -1;
  *line += used;
  for (int32_t d = 0; d < b->n; d++) {
    if (sscanf(*line, " %" SCNd64 " %" SCNd64 " %" SCNd32 "%n", &b->extents[d], &b->strides[d], &b->box[d], &used) != 3) return -1;
    if (b->box[d] < 1 || b->box[d] > TILTH_BOX_LENGTH) return -1;
    *line += used;
  }
  return 0;
}

static int read_parameter(const char **line, const struct bounds *b, struct image_parameter *p) {
  *p = (struct image_parameter){0};
  if (strncmp(*line, " m ", 3) != 0) return read_pointer(line, b, p);
  if (!(p->boxes = calloc(1, sizeof *p->boxes)) || read_boxes(line, p->boxes) || read_pointer(line, b, p)) return -1;
  if (p->arg < 0 && p->offset % 16) return -1;
  return boxes_fit(p->boxes, p->arg >= 0 ? b->args[p->arg].bytes : b->workspace - p->offset) ? 0 : -1;
}

static int read_launch(struct text *t, const struct bounds *b, struct image_launch *l) {
  char line[IMAGE_LINE];
  int used;
  if (!next_line(t, line) || sscanf(line, "launch %127s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd32 "%n", l->entry, &l->blocks, &l->threads, &l->shared_bytes,
                                    &l->n_parameters, &used) != 5)
    return -1;
  if (l->blocks < 1 || l->blocks > INT32_MAX || l->threads < 1 || l->threads > 1024 || l->shared_bytes < 0 || l->shared_bytes > INT32_MAX ||
      l->n_parameters < 0 || l->n_parameters > IMAGE_PARAMETERS)
    return -1;
  const char *rest = line + used;
  if (!(l->parameters = calloc(l->n_parameters + 1, sizeof *l->parameters))) return -1;
  for (int32_t k = 0; k < l->n_parameters; k++)
    if (read_parameter(&rest, b, &l->parameters[k])) return -1;
  return *rest ? -1 : 0;
}

/* What `run` is of a kernel that runs elsewhere. */
static void not_here(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {
  (void)rt, (void)args, (void)prepared, (void)workspace;
  abort();
}

static int read_kernel(struct text *t, const struct tilth_module *m, struct image_kernel *k) {
  char line[IMAGE_LINE], id[IMAGE_NAME];
  if (!next_line(t, line) ||
      sscanf(line, "kernel %127s %" SCNd64 " %lf %" SCNd32, id, &k->kernel.workspace_bytes, &k->kernel.error_growth, &k->n_launches) != 4)
    return -1;
  k->kernel.run = not_here, k->kernel.id = strdup(id);
  if (!k->kernel.id || k->kernel.workspace_bytes < 0 || k->n_launches < 0 || k->n_launches > IMAGE_LAUNCHES) return -1;
  if (!(k->launches = calloc(k->n_launches + 1, sizeof *k->launches))) return -1;
  const struct bounds b = {m->args, m->n_args, k->kernel.workspace_bytes};
  for (int32_t i = 0; i < k->n_launches; i++)
    if (read_launch(t, &b, &k->launches[i])) return -1;
  return 0;
}

static int read_args(struct text *t, struct tilth_module *m) {
  char line[IMAGE_LINE];
  if (!next_line(t, line) || sscanf(line, "args %" SCNd32, &m->n_args) != 1 || m->n_args < 1 || m->n_args > IMAGE_ARGUMENTS) return -1;
  struct tilth_arg *args = calloc(m->n_args, sizeof *args);
  m->args = args;
  if (!args) return -1;
  for (int32_t k = 0; k < m->n_args; k++)
    if (read_arg(t, &args[k])) return -1;
  return 0;
}

static int read_kernels(struct text *t, struct image *i) {
  char line[IMAGE_LINE];
  struct tilth_module *m = &i->module;
  if (!next_line(t, line) || sscanf(line, "kernels %" SCNd32, &m->n_kernels) != 1 || m->n_kernels < 0 || m->n_kernels > IMAGE_KERNELS) return -1;
  struct tilth_kernel *kernels = calloc(m->n_kernels + 1, sizeof *kernels);
  i->kernels = calloc(m->n_kernels + 1, sizeof *i->kernels);
  m->kernels = kernels;
  if (!kernels || !i->kernels) return -1;
  for (int32_t k = 0; k < m->n_kernels; k++) {
    if (read_kernel(t, m, &i->kernels[k])) return -1;
    kernels[k] = i->kernels[k].kernel;
  }
  return 0;
}

/* Copies the code, which the driver wants aligned and with an end. */
static int read_code(struct text *t, struct image *i) {
  char line[IMAGE_LINE];
  int64_t left;
  if (!next_line(t, line) || sscanf(line, "code %" SCNd64 " %" SCNd64, &i->code_bytes, &i->assembled_bytes) != 2) return -1;
  left = t->end - t->at;
  if (i->code_bytes < 0 || i->code_bytes > left || i->assembled_bytes != left - i->code_bytes) return -1;
  if (!(i->code = malloc(i->code_bytes + 1))) return -1;
  memcpy(i->code, t->at, i->code_bytes);
  i->code[i->code_bytes] = 0;
  if (i->assembled_bytes == 0) return 0;
  if (!(i->assembled = malloc(i->assembled_bytes))) return -1;
  memcpy(i->assembled, t->at + i->code_bytes, i->assembled_bytes);
  return 0;
}

static int read_all(struct text *t, struct image *i) {
  char line[IMAGE_LINE];
  int version;
  if (!next_line(t, line) || sscanf(line, "tilth-device-module %d", &version) != 1 || version != 4) return -1;
  if (read_args(t, &i->module) || read_kernels(t, i)) return -1;
  i->module.abi = TILTH_ABI;
  return read_code(t, i);
}

/* The whole file, with a zero behind it. */
static char *contents(const char *path, int64_t *bytes) {
  FILE *f = fopen(path, "rb");
  char *all = NULL;
  if (!f) return NULL;
  if (fseek(f, 0, SEEK_END) == 0 && (*bytes = ftell(f)) >= 0 && *bytes <= IMAGE_BYTES && fseek(f, 0, SEEK_SET) == 0 && (all = malloc(*bytes + 1)))
    all[fread(all, 1, *bytes, f) == (size_t)*bytes ? *bytes : 0] = 0;
  fclose(f);
  return all;
}

struct image *image_read(const char *path, char *message, int message_bytes) {
  int64_t bytes = 0;
  char *all = contents(path, &bytes);
  struct image *i = calloc(1, sizeof *i);
  if (!all || !i) {
    snprintf(message, message_bytes, "reading %s: %s", path, strerror(errno));
    return NULL;
  }
  struct text t = {all, all + bytes, 0};
  int bad = read_all(&t, i);
  free(all);
  if (!bad) return i;
  snprintf(message, message_bytes, "%s is no module for a device: what line %d should say is not there", path, t.line);
  return NULL;
}

static struct {
  struct image *all[IMAGE_FILES];
  int n;
} kept;

int image_keep(struct image *i) {
  if (kept.n == IMAGE_FILES) return -1;
  kept.all[kept.n++] = i;
  return 0;
}

struct image *image_take(void) { return kept.n > 0 ? kept.all[--kept.n] : NULL; }

static void close_kernel(struct image_kernel *k) {
  for (int32_t n = 0; n < k->n_launches; n++) {
    struct image_launch *l = &k->launches[n];
    for (int32_t p = 0; p < l->n_parameters; p++) free(l->parameters[p].boxes), free(l->parameters[p].map);
    free(l->parameters);
  }
  free(k->launches);
  free((void *)k->kernel.id);
}

void image_close(struct image *i) {
  for (int32_t k = 0; k < i->module.n_kernels; k++) close_kernel(&i->kernels[k]);
  for (int32_t k = 0; k < i->module.n_args; k++) free((void *)i->module.args[k].name);
  free(i->kernels), free((void *)i->module.kernels), free((void *)i->module.args);
  free(i->code), free(i->assembled), free(i);
}

const struct image_kernel *image_kernel_of(const struct tilth_kernel *kernel) {
  for (int n = 0; n < kept.n; n++) {
    const struct image *i = kept.all[n];
    if (kernel >= i->module.kernels && kernel < i->module.kernels + i->module.n_kernels) return &i->kernels[kernel - i->module.kernels];
  }
  return NULL;
}
