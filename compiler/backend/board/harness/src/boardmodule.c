#define _GNU_SOURCE
#include "boardmodule.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Modules are larger than this by mistake only. */
#define MOST_BYTES (UINT32_C(64) << 20)
enum { MOST_NAME = 128 };

/* How structures of tilth_kernel.h lie in the memory of a processor of 32 bits. */
enum {
  MODULE_ABI = 0, MODULE_N_ARGS = 4, MODULE_ARGS = 8, MODULE_N_KERNELS = 12, MODULE_KERNELS = 16, MODULE_BYTES = 20,
  ARG_NAME = 0, ARG_ELEMENTS = 8, ARG_SIZE = 16, ARG_DTYPE = 24, ARG_ROLE = 28, ARG_TOLERANCE = 32, ARG_ROUNDING = 40, ARG_POINTS = 48, ARG_BYTES = ARG_POINTS + 8 * TILTH_POINTS,
  KERNEL_ID = 0, KERNEL_N_PREPARED = 4, KERNEL_PACKS = 8, KERNEL_RUN = 12, KERNEL_WORKSPACE = 16, KERNEL_WORKER = 24, KERNEL_GROWTH = 32,
  KERNEL_BYTES = 40,
  PACK_SIZE = 0, PACK_FILL = 8, PACK_BYTES = 16,
};

static int fits(const struct boardmodule *m, uint64_t at, uint64_t bytes) { return at <= m->size && bytes <= m->size - at; }

static uint32_t word(const struct boardmodule *m, uint32_t at) {
  uint32_t w;
  memcpy(&w, m->bytes + at, 4);
  return w;
}

static int64_t wide(const struct boardmodule *m, uint32_t at) {
  int64_t w;
  memcpy(&w, m->bytes + at, 8);
  return w;
}

static double real(const struct boardmodule *m, uint32_t at) {
  double w;
  memcpy(&w, m->bytes + at, 8);
  return w;
}

/* Returns a copy of the string at an offset, or NULL if it is not terminated. */
static char *text(const struct boardmodule *m, uint32_t at) {
  if (!fits(m, at, 1)) return NULL;
  uint32_t most = m->size - at < MOST_NAME ? m->size - at : MOST_NAME;
  return memchr(m->bytes + at, 0, most) ? strdup((const char *)m->bytes + at) : NULL;
}

/* The file, and the parts of it that are looked at. */
struct file {
  const unsigned char *all;
  uint64_t bytes;
  Elf32_Ehdr head;
};

static int read_segments(const struct file *f, struct boardmodule *m, Elf32_Phdr *dynamic) {
  uint64_t end = 0;
  *dynamic = (Elf32_Phdr){0};
  for (int pass = 0; pass < 2; pass++) {
    for (int k = 0; k < f->head.e_phnum; k++) {
      Elf32_Phdr p;
      memcpy(&p, f->all + f->head.e_phoff + k * sizeof p, sizeof p);
      if (p.p_type == PT_DYNAMIC) *dynamic = p;
      if (p.p_type != PT_LOAD) continue;
      uint64_t behind = (uint64_t)p.p_vaddr + p.p_memsz;
      if (p.p_filesz > p.p_memsz || (uint64_t)p.p_offset + p.p_filesz > f->bytes || behind > MOST_BYTES) return -1;
      if (behind > end) end = behind;
      if (pass) memcpy(m->bytes + p.p_vaddr, f->all + p.p_offset, p.p_filesz);
    }
    if (!pass && (end == 0 || !(m->bytes = calloc(1, (end + 7) & ~UINT64_C(7))))) return -1;
    m->size = (uint32_t)(end + 7) & ~UINT32_C(7);
  }
  return 0;
}

/* Words that an address is added to; there are no other relocations, as nothing is undefined. */
static int read_relocations(const struct file *f, struct boardmodule *m, const Elf32_Phdr *dynamic) {
  uint32_t at = 0, bytes = 0, entry = 0;
  if (!fits(m, dynamic->p_vaddr, dynamic->p_memsz)) return -1;
  for (uint32_t k = 0; k + 8 <= dynamic->p_memsz; k += 8) {
    uint32_t tag = word(m, dynamic->p_vaddr + k), value = word(m, dynamic->p_vaddr + k + 4);
    if (tag == DT_NULL) break;
    if (tag == DT_NEEDED || tag == DT_PLTRELSZ) return -1;
    if (tag == DT_REL || tag == DT_RELA) at = value, entry = tag == DT_REL ? 8 : 12;
    if (tag == DT_RELSZ || tag == DT_RELASZ) bytes = value;
  }
  if (bytes == 0) return 0;
  if (entry == 0 || !fits(m, at, bytes) || !(m->words = calloc(bytes / entry + 1, sizeof *m->words))) return -1;
  uint32_t relative = f->head.e_machine == EM_ARM ? R_ARM_RELATIVE : R_RISCV_RELATIVE;
  for (uint32_t k = 0; k + entry <= bytes; k += entry) {
    uint32_t offset = word(m, at + k);
    if ((word(m, at + k + 4) & 0xFF) != relative || !fits(m, offset, 4)) return -1;
    if (entry == 12) memcpy(m->bytes + offset, m->bytes + at + k + 8, 4);
    m->words[m->n_words++] = offset;
  }
  return 0;
}

static int read_args(struct boardmodule *m, uint32_t at, int32_t n) {
  struct tilth_arg *args;
  if (n < 1 || n > BOARDMODULE_ARGS || !fits(m, at, (uint64_t)n * ARG_BYTES) || !(args = calloc(n, sizeof *args))) return -1;
  m->module.args = args, m->module.n_args = n;
  for (int32_t k = 0; k < n; k++, at += ARG_BYTES) {
    args[k] = (struct tilth_arg){text(m, word(m, at + ARG_NAME)), wide(m, at + ARG_ELEMENTS), wide(m, at + ARG_SIZE), (int32_t)word(m, at + ARG_DTYPE),
                                 (int32_t)word(m, at + ARG_ROLE), real(m, at + ARG_TOLERANCE), real(m, at + ARG_ROUNDING), {0}};
    for (uint32_t p = 0; p < TILTH_POINTS; p++) args[k].points[p] = wide(m, at + ARG_POINTS + 8 * p);
    if (!args[k].name || args[k].elements < 0 || args[k].bytes < 0) return -1;
  }
  return 0;
}

static int read_packs(struct boardmodule *m, struct boardmodule_kernel *k, uint32_t list) {
  if (k->n_packs < 0 || k->n_packs > BOARDMODULE_PACKS || !fits(m, list, 4 * (uint64_t)k->n_packs)) return -1;
  if (!(k->packs = calloc(k->n_packs + 1, sizeof *k->packs))) return -1;
  for (int32_t i = 0; i < k->n_packs; i++) {
    uint32_t at = word(m, list + 4 * i);
    if (!fits(m, at, PACK_BYTES)) return -1;
    k->packs[i] = (struct boardmodule_pack){wide(m, at + PACK_SIZE), word(m, at + PACK_FILL)};
    if (k->packs[i].bytes < 0 || !fits(m, k->packs[i].fill, 0)) return -1;
  }
  return 0;
}

/* What `run` is of a kernel that runs elsewhere. */
static void not_on_host(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {
  (void)rt, (void)args, (void)prepared, (void)workspace;
  abort();
}

static int read_kernels(struct boardmodule *m, uint32_t at, int32_t n) {
  struct tilth_kernel *kernels;
  if (n < 0 || n > BOARDMODULE_KERNELS || !fits(m, at, (uint64_t)n * KERNEL_BYTES) || !(kernels = calloc(n + 1, sizeof *kernels)) ||
      !(m->kernels = calloc(n + 1, sizeof *m->kernels)))
    return -1;
  m->module.kernels = kernels, m->module.n_kernels = n;
  for (int32_t k = 0; k < n; k++, at += KERNEL_BYTES) {
    m->kernels[k] = (struct boardmodule_kernel){word(m, at + KERNEL_RUN), (int32_t)word(m, at + KERNEL_N_PREPARED), NULL};
    kernels[k] = (struct tilth_kernel){.id = text(m, word(m, at + KERNEL_ID)), .run = not_on_host, .workspace_bytes = wide(m, at + KERNEL_WORKSPACE),
                                       .worker_bytes = wide(m, at + KERNEL_WORKER), .error_growth = real(m, at + KERNEL_GROWTH)};
    if (!kernels[k].id || kernels[k].workspace_bytes < 0 || kernels[k].worker_bytes < 0 || !fits(m, m->kernels[k].run, 0)) return -1;
    if (read_packs(m, &m->kernels[k], word(m, at + KERNEL_PACKS))) return -1;
  }
  return 0;
}

static int read_table(const struct file *f, struct boardmodule *m) {
  if (!fits(m, f->head.e_entry, sizeof m->table)) return -1;
  memcpy(&m->table, m->bytes + f->head.e_entry, sizeof m->table);
  uint32_t at = m->table.module;
  if (!fits(m, at, MODULE_BYTES)) return -1;
  m->module.abi = (int32_t)word(m, at + MODULE_ABI);
  if (m->module.abi != TILTH_ABI || read_args(m, word(m, at + MODULE_ARGS), (int32_t)word(m, at + MODULE_N_ARGS))) return -1;
  return read_kernels(m, word(m, at + MODULE_KERNELS), (int32_t)word(m, at + MODULE_N_KERNELS));
}

static int read_module(struct file *f, struct boardmodule *m) {
  Elf32_Phdr dynamic;
  if (f->bytes < sizeof f->head) return -1;
  memcpy(&f->head, f->all, sizeof f->head);
  if (memcmp(f->head.e_ident, ELFMAG, SELFMAG) || f->head.e_ident[EI_CLASS] != ELFCLASS32 || f->head.e_ident[EI_DATA] != ELFDATA2LSB ||
      (f->head.e_machine != EM_ARM && f->head.e_machine != EM_RISCV) || f->head.e_phentsize != sizeof(Elf32_Phdr) ||
      (uint64_t)f->head.e_phoff + (uint64_t)f->head.e_phnum * sizeof(Elf32_Phdr) > f->bytes)
    return -1;
  if (read_segments(f, m, &dynamic) || read_relocations(f, m, &dynamic)) return -1;
  return read_table(f, m);
}

/* The whole file, allocated; NULL on failure. */
static unsigned char *whole(const char *path, uint64_t *bytes) {
  FILE *f = fopen(path, "rb");
  unsigned char *all = NULL;
  long end;
  if (!f) return NULL;
  errno = EFBIG;
  if (fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) >= 0 && (uint64_t)end <= MOST_BYTES && fseek(f, 0, SEEK_SET) == 0 && (all = malloc(end + 1)))
    *bytes = fread(all, 1, end, f);
  fclose(f);
  return all;
}

struct boardmodule *boardmodule_read(const char *path, char *message, int message_bytes) {
  struct file f = {0};
  unsigned char *all = whole(path, &f.bytes);
  struct boardmodule *m = calloc(1, sizeof *m);
  if (!all || !m) {
    snprintf(message, message_bytes, "reading %s: %s", path, strerror(errno));
    free(all), free(m);
    return NULL;
  }
  f.all = all;
  int bad = read_module(&f, m);
  free(all);
  if (!bad) return m;
  boardmodule_free(m);
  snprintf(message, message_bytes, "%s is no module for a board", path);
  return NULL;
}

void boardmodule_free(struct boardmodule *m) {
  if (!m) return;
  for (int32_t k = 0; k < m->module.n_args; k++) free((void *)m->module.args[k].name);
  for (int32_t k = 0; k < m->module.n_kernels; k++) {
    free((void *)m->module.kernels[k].id);
    free(m->kernels[k].packs);
  }
  free((void *)m->module.args), free((void *)m->module.kernels);
  free(m->kernels), free(m->words), free(m->bytes), free(m);
}

unsigned char *boardmodule_at(const struct boardmodule *m, uint32_t address) {
  unsigned char *copy = malloc(m->size);
  if (!copy) return NULL;
  memcpy(copy, m->bytes, m->size);
  for (uint32_t k = 0; k < m->n_words; k++) {
    uint32_t w;
    memcpy(&w, copy + m->words[k], 4);
    w += address;
    memcpy(copy + m->words[k], &w, 4);
  }
  return copy;
}
