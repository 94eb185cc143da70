/* A driver without a GPU, for tests. Code that it is asked to load is looked up by its digest in the folder of this
 * library: NAME.so plays it. Files of that folder configure it, each with a number: `devices`,
 * how many there are; `begin`, milliseconds that a process takes to begin with the driver; `slices`, of how many parts
 * the first one consists (MIG), if it is cut; `memory`, MiB of each; `used`, those that other programs have;
 * `modules`, how many a process may have loaded; `clean`, 1 if memory is not to be freed with data in it; `refuse`, 1
 * if no cubin is taken; `capability`, what it is, 90 for that of sm_90: code for other chips is refused as drivers do;
 * `illegal`, `hang` and `vanish`, the launch from which on that happens, counted in this process from 1. A name
 * with a point and the number of a card behind it is of that card alone: `vanish.1`. As with the driver, an error of a
 * launch is found by the next call that waits for it, and stays. A card that has vanished leaves a file, `vanished.1`,
 * while which is there no other process finds that card. A file `begun` has a byte for each process that began with
 * the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "sim_maps.h"
#include "tilth_kernel.h"
#include "setting.h"

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NO_BINARY = 209, OPERATING_SYSTEM = 304, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LOST = 999 };
enum { MULTIPROCESSORS = 4, MOST_ALLOCATIONS = 4096 };

#define EXPORT __attribute__((visibility("default")))

struct CUmod_st { void *player; int calibration; CUcontext context; unsigned life; };
/* How a kernel is played, and how many of its parameters are tensor maps: the last ones. */
struct CUfunc_st { void (*play)(const struct tilth_runtime *rt, void *const *parameters, int64_t blocks); CUcontext context; unsigned life; int maps; };
struct CUstream_st { int unused; };
struct CUevent_st { double seconds; };

/* A card's primary context. It ends with its last user, which unloads everything that was loaded into it. */
struct CUctx_st { int card, users; unsigned life; };
static struct CUctx_st primaries[64];
/* What the thread has chosen. As with the driver, it can do nothing before. */
static __thread CUcontext current;
#define WITH_CONTEXT if (!current || current->users == 0) return INVALID_CONTEXT;

enum { MOST_MAPS = 16 };

/* A launch, with its pointers and tensor maps; or a function of the host. */
struct started {
  void (*host)(void *of);
  void *of;
  void (*play)(const struct tilth_runtime *rt, void *const *parameters, int64_t blocks);
  void *pointers[256];
  int64_t blocks;
  int first_map, n_maps;
  struct sim_map maps[MOST_MAPS];
};
struct CUgraph_st { struct started *all; int n; };
struct CUgraphExec_st { struct CUgraph_st graph; };

static struct {
  CUresult sticky;
  int64_t launches, allocated, modules;
  struct { char *at; size_t bytes; } all[MOST_ALLOCATIONS];
  struct CUgraph_st *recorded; /* while launches are recorded */
} fake;

/* A file of a card. */
static const char *path_of(const char *name, int card, char *path, int bytes) {
  snprintf(path, bytes, "%s/%s.%d", folder(), name, card);
  return path;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void serial(const struct tilth_runtime *rt, tilth_body body, void *closure, int64_t n) {
  (void)rt;
  body(closure, 0, n, 0);
}

static const struct tilth_runtime runtime = {1, serial};

/* A card, or a slice of one. */
struct card { int number, slice; };

/* What is shown to this process, found by cuInit. */
static struct { struct card all[64]; int n; } shown;

static void name_card(struct card c, char *id, int bytes) {
  snprintf(id, bytes, "%s-fa4e00%02x-0000-4000-8000-0000000000%02x", c.slice >= 0 ? "MIG" : "GPU", c.number, c.slice + 1);
}

static int is_called(struct card c, const char *word, int position) {
  char id[64];
  name_card(c, id, sizeof id);
  if (*word >= '0' && *word <= '9') return atoi(word) == position;
  return strlen(word) > 4 && strncmp(id, word, strlen(word)) == 0;
}

/* All cards. A process is shown one slice of a card that is cut, unless it asks for another by its name. */
static int all_cards(struct card *all, int most_slices) {
  int n = 0, devices = (int)setting("devices", 1), slices = (int)setting("slices", 0);
  for (int k = 0; k < devices && n < 32; k++) {
    char gone[4200];
    if (access(path_of("vanished", k, gone, sizeof gone), F_OK) == 0) continue;
    if (k > 0 || slices == 0) all[n++] = (struct card){k, -1};
    for (int part = 0; k == 0 && part < slices && part < most_slices; part++) all[n++] = (struct card){k, part};
  }
  return n;
}

/* As with the driver, the first word that names no card ends the list. */
static void show_cards(void) {
  struct card all[64];
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  char words[1024], *rest = words;
  shown.n = all_cards(shown.all, 1);
  if (!visible) return;
  int n = all_cards(all, 16);
  shown.n = 0;
  snprintf(words, sizeof words, "%s", visible);
  for (char *word; (word = strsep(&rest, ",")) && shown.n < 64;) {
    int k = 0;
    while (k < n && !is_called(all[k], word, k)) k++;
    if (k == n) return;
    shown.all[shown.n++] = all[k];
  }
}

/* Each process that begins with the driver adds a byte to a file. */
static void count_process(void) {
  char path[4200];
  snprintf(path, sizeof path, "%s/begun", folder());
  int file = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, ".", 1) < 0) abort();
  close(file);
}

/* A thread of the driver. It publishes its number, and ends once it has a name. */
struct helper { pid_t number; sem_t numbered, named; };

static void *help(void *of) {
  struct helper *h = of;
  h->number = gettid();
  sem_post(&h->numbered);
  while (sem_wait(&h->named)) {}
  return NULL;
}

/* As the driver does: by a file of the process, which is there only if /proc has the numbers that the process knows. */
static CUresult name_thread(pid_t number) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)number);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return OPERATING_SYSTEM;
  int named = write(file, "fake-driver", 11) == 11;
  close(file);
  return named ? CUDA_SUCCESS : OPERATING_SYSTEM;
}

static CUresult start_thread(void) {
  struct helper h;
  pthread_t thread;
  sem_init(&h.numbered, 0, 0), sem_init(&h.named, 0, 0);
  if (pthread_create(&thread, NULL, help, &h)) return OPERATING_SYSTEM;
  while (sem_wait(&h.numbered)) {}
  CUresult result = name_thread(h.number);
  sem_post(&h.named);
  pthread_join(thread, NULL);
  return result;
}

EXPORT CUresult cuInit(unsigned flags) {
  CUresult result = start_thread();
  if (result != CUDA_SUCCESS) return result;
  count_process();
  usleep((useconds_t)(1000 * setting("begin", 0)));
  show_cards();
  return flags ? INVALID_VALUE : shown.n > 0 ? CUDA_SUCCESS : NO_DEVICE;
}
EXPORT CUresult cuDriverGetVersion(int *version) { return *version = 12040, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGetCount(int *n) { return *n = shown.n, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, ordinal >= 0 && ordinal < shown.n ? CUDA_SUCCESS : INVALID_DEVICE; }

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  struct card c = shown.all[device];
  snprintf(name, bytes, c.slice >= 0 ? "Fake GPU %d MIG 1g.1gb" : "Fake GPU %d", c.number);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  struct card c = shown.all[device];
  *uuid = (CUuuid){{0xfa, 0x4e, 0, (unsigned char)c.number, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, (unsigned char)(c.slice + 1)}};
  return CUDA_SUCCESS;
}

/* The number of a file of a card, or else of all. */
static int64_t told_of(CUdevice device, const char *name, int64_t otherwise) {
  char own[64];
  snprintf(own, sizeof own, "%s.%d", name, shown.all[device].number);
  return setting(own, setting(name, otherwise));
}

static int capability(CUdevice device) { return (int)told_of(device, "capability", 90); }

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  static const struct { int attribute, value; } known[] = {
      {CU_BLOCK_THREADS, 1024}, {CU_WARP_THREADS, 32}, {CU_MULTIPROCESSORS, MULTIPROCESSORS}, {CU_L2_BYTES, 1 << 20},
      {CU_MULTIPROCESSOR_THREADS, 2048}, {CU_MULTIPROCESSOR_SHARED_BYTES, 228 << 10},
      {CU_MULTIPROCESSOR_REGISTERS, 64 << 10}, {CU_BLOCK_SHARED_BYTES, 227 << 10}};
  if (attribute == CU_COMPUTE_MAJOR) return *value = capability(device) / 10, CUDA_SUCCESS;
  if (attribute == CU_COMPUTE_MINOR) return *value = capability(device) % 10, CUDA_SUCCESS;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (known[k].attribute == attribute) return *value = known[k].value, CUDA_SUCCESS;
  return INVALID_VALUE;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CUcontext c = *context = &primaries[device];
  c->card = device;
  if (c->users++ == 0) c->life++;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return primaries[device].users > 0 ? primaries[device].users--, CUDA_SUCCESS : INVALID_CONTEXT; }
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) { return *flags = 0, *active = primaries[device].users > 0, CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetDevice(CUdevice *device) { WITH_CONTEXT return *device = current->card, CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current, CUDA_SUCCESS; }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }

static uint64_t digest(const char *text) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return h;
}

static const char elf[] = {0x7f, 'E', 'L', 'F'};

/* Reports whether code does not suit this chip. Cubins suit their chip and later ones of its generation, PTX all later ones, and code whose number
 * ends in `a` that chip alone. */
static int is_for_others(const char *image, int cubin) {
  static const char word[] = ".target sm_";
  const char *at = strstr(image, word);
  char *end;
  if (!at) return 0;
  long chip = strtol(at + strlen(word), &end, 10), own = capability(current->card);
  if (*end == 'a') return chip != own;
  return chip > own || (cubin && chip / 10 != own / 10);
}

/* Puts what a compiler would say where it is wanted. */
static void complain(unsigned n, const int *options, void *const *values, const char *text) {
  for (unsigned k = 0; k < n; k++)
    if (options[k] == CU_JIT_ERROR_LOG) strcpy(values[k], text);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values) {
  WITH_CONTEXT
  char path[4200];
  if (fake.sticky) return fake.sticky;
  if (memcmp(image, elf, sizeof elf) == 0) { /* PTX that the fake assembler has passed on */
    image = (const char *)image + sizeof elf;
    if (setting("refuse", 0) || is_for_others(image, 1)) return NO_BINARY;
  } else if (is_for_others(image, 0)) {
    return complain(n, options, values, "this code is for other chips"), NO_BINARY;
  }
  if (fake.modules >= setting("modules", INT64_MAX)) return OUT_OF_MEMORY;
  *module = calloc(1, sizeof **module);
  (*module)->context = current, (*module)->life = current->life;
  fake.modules++;
  if (((*module)->calibration = strstr(image, "tilth_calibration") != NULL)) return CUDA_SUCCESS;
  const char *player = strstr(image, "// player ");
  if (player)
    snprintf(path, sizeof path, "%s/%.19s", folder(), player + strlen("// player "));
  else
    snprintf(path, sizeof path, "%s/%016llx.so", folder(), (unsigned long long)digest(image));
  if (((*module)->player = dlopen(path, RTLD_NOW | RTLD_LOCAL))) return CUDA_SUCCESS;
  complain(n, options, values, "this code has no player");
  return INVALID_IMAGE;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  WITH_CONTEXT
  if (module->player) dlclose(module->player);
  free(module);
  fake.modules--;
  return CUDA_SUCCESS;
}

static void nothing(const struct tilth_runtime *rt, void *const *parameters, int64_t blocks) { (void)rt, (void)parameters, (void)blocks, usleep(1000); }

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  WITH_CONTEXT
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s_play", name);
  if (module->context != current || module->life != current->life) return INVALID_HANDLE;
  *function = calloc(1, sizeof **function);
  (*function)->context = current, (*function)->life = current->life;
  *(void **)&(*function)->play = module->calibration ? (void *)nothing : dlsym(module->player, symbol);
  if (!(*function)->play) return NOT_FOUND;
  snprintf(symbol, sizeof symbol, "%s_maps", name);
  const int *maps = module->calibration ? NULL : dlsym(module->player, symbol);
  (*function)->maps = maps ? *maps : 0;
  return CUDA_SUCCESS;
}

/* Every kernel takes 32 registers, and spills nothing. */
EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
  WITH_CONTEXT
  (void)function;
  *value = attribute == CU_FUNC_REGISTERS ? 32 : 0;
  return attribute == CU_FUNC_REGISTERS || attribute == CU_FUNC_LOCAL_BYTES || attribute == CU_FUNC_SHARED_BYTES ? CUDA_SUCCESS : INVALID_VALUE;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared_bytes) {
  WITH_CONTEXT
  int by_threads = 2048 / threads, by_shared = shared_bytes > 0 ? (int)((228 << 10) / shared_bytes) : by_threads;
  (void)function;
  *blocks = by_shared < by_threads ? by_shared : by_threads;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  WITH_CONTEXT
  return (void)function, attribute == CU_FUNC_MAX_DYNAMIC_SHARED_BYTES && value <= 227 << 10 ? CUDA_SUCCESS : INVALID_VALUE;
}

/* That of the card that this process uses. */
static int64_t told_of_card(const char *name, int64_t otherwise) { return told_of(current->card, name, otherwise); }

static CUresult vanish(void) {
  char path[4200];
  int file = open(path_of("vanished", shown.all[current->card].number, path, sizeof path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return fake.sticky = LOST;
}

static CUresult play(const struct started *s) {
  void *parameters[256];
  if (fake.sticky) return fake.sticky;
  if (s->host) return s->host(s->of), CUDA_SUCCESS;
  fake.launches++;
  if (fake.launches >= told_of_card("illegal", INT64_MAX)) return fake.sticky = ILLEGAL_ADDRESS, CUDA_SUCCESS;
  if (fake.launches >= told_of_card("vanish", INT64_MAX)) return vanish();
  while (fake.launches >= told_of_card("hang", INT64_MAX)) pause();
  memcpy(parameters, s->pointers, sizeof parameters);
  for (int k = 0; k < s->n_maps; k++) parameters[s->first_map + k] = (void *)&s->maps[k];
  s->play(&runtime, parameters, s->blocks);
  return CUDA_SUCCESS;
}

/* Plays a launch, unless it is recorded. */
static CUresult begin(const struct started *s) {
  struct CUgraph_st *g = fake.recorded;
  if (!g) return play(s);
  g->all = realloc(g->all, (g->n + 1) * sizeof *g->all);
  g->all[g->n++] = *s;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, void (*host)(void *of), void *of) {
  WITH_CONTEXT
  const struct started s = {.host = host, .of = of};
  return (void)stream, fake.sticky ? fake.sticky : begin(&s);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared_bytes, CUstream stream, void **parameters, void **extra) {
  WITH_CONTEXT
  struct started s = {.play = function->play, .blocks = grid_x, .n_maps = function->maps};
  (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes, (void)stream, (void)extra;
  if (fake.sticky) return fake.sticky;
  if (function->context != current || function->life != current->life) return INVALID_HANDLE;
  if (function->play == nothing) return nothing(NULL, NULL, 0), CUDA_SUCCESS;
  while (s.first_map < 256 && parameters[s.first_map]) s.first_map++;
  if (s.n_maps > MOST_MAPS || (s.first_map -= s.n_maps) < 0) return INVALID_VALUE;
  for (int k = 0; k < s.first_map; k++) memcpy(&s.pointers[k], parameters[k], sizeof *s.pointers);
  for (int k = 0; k < s.n_maps; k++) memcpy(&s.maps[k], parameters[s.first_map + k], sizeof *s.maps);
  return begin(&s);
}

/* A tensor map, which is what the simulation has for one. What the driver is documented to refuse is refused. */
EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t n, void *address, const uint64_t *extents, const uint64_t *strides,
                                       const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}, panels[] = {0, 32, 64, 128};
  _Static_assert(sizeof(struct sim_map) <= sizeof *map, "it has room in a tensor map");
  if ((uintptr_t)map % 64 || type < 0 || type > 12 || n < 1 || n > 5 || swizzle < 1 || swizzle > 3 || promotion < 0 || promotion > 3) return INVALID_VALUE;
  if (interleave || fill) return INVALID_VALUE; /* which are not played */
  struct sim_map m = {.address = (uintptr_t)address, .kind = SIM_MAP, .dimensions = (uint8_t)n, .element_bytes = bytes[type], .panel = panels[swizzle]};
  for (uint32_t d = 0; d < n; d++) {
    if (extents[d] < 1 || extents[d] > UINT64_C(1) << 32 || box[d] > SIM_MOST_BOX || steps[d] != 1) return INVALID_VALUE;
    m.last[d] = (uint32_t)(extents[d] - 1), m.box[d] = (uint16_t)box[d];
    if (d > 0) m.strides[d] = strides[d - 1];
  }
  if (sim_map_mistake(&m)) return INVALID_VALUE;
  memset(map, 0, sizeof *map);
  memcpy(map, &m, sizeof m);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  WITH_CONTEXT
  (void)stream;
  if (fake.recorded || mode != CU_CAPTURE_THREAD_LOCAL) return INVALID_VALUE;
  fake.recorded = calloc(1, sizeof *fake.recorded);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  WITH_CONTEXT
  (void)stream;
  *graph = fake.recorded, fake.recorded = NULL;
  return *graph ? CUDA_SUCCESS : INVALID_VALUE;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *run, CUgraph graph, unsigned long long flags) {
  WITH_CONTEXT
  *run = calloc(1, sizeof **run);
  (*run)->graph.n = graph->n, (*run)->graph.all = malloc((graph->n + 1) * sizeof *graph->all);
  if (graph->n > 0) memcpy((*run)->graph.all, graph->all, graph->n * sizeof *graph->all);
  return flags ? INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec run, CUstream stream) {
  WITH_CONTEXT
  CUresult result = fake.sticky;
  (void)stream;
  for (int k = 0; result == CUDA_SUCCESS && k < run->graph.n; k++) result = play(&run->graph.all[k]);
  return result;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) { WITH_CONTEXT return free(graph->all), free(graph), CUDA_SUCCESS; }
EXPORT CUresult cuGraphExecDestroy(CUgraphExec run) { WITH_CONTEXT return free(run->graph.all), free(run), CUDA_SUCCESS; }

static int64_t unused(void) { return ((told_of_card("memory", 1024) - told_of_card("used", 0)) << 20) - fake.allocated; }

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
  WITH_CONTEXT
  char gone[4200];
  if (access(path_of("vanished", shown.all[current->card].number, gone, sizeof gone), F_OK) == 0) return LOST;
  *left = unused() > 0 ? (size_t)unused() : 0;
  return *total = (size_t)told_of_card("memory", 1024) << 20, fake.sticky;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
  WITH_CONTEXT
  if (fake.sticky) return fake.sticky;
  if ((int64_t)bytes > unused()) return OUT_OF_MEMORY;
  for (int k = 0; k < MOST_ALLOCATIONS; k++) {
    if (fake.all[k].at) continue;
    fake.all[k].at = aligned_alloc(256, (bytes + 255) / 256 * 256), fake.all[k].bytes = bytes;
    fake.allocated += (int64_t)bytes;
    *memory = (CUdeviceptr)fake.all[k].at;
    return CUDA_SUCCESS;
  }
  return OUT_OF_MEMORY;
}

/* Whether memory holds anything but one value. */
static int has_data(const char *at, size_t bytes) { return bytes > 1 && memcmp(at, at + 1, bytes - 1) != 0; }

EXPORT CUresult cuMemFree_v2(CUdeviceptr memory) {
  WITH_CONTEXT
  for (int k = 0; k < MOST_ALLOCATIONS; k++)
    if (fake.all[k].at && fake.all[k].at == (char *)memory) {
      if (setting("clean", 0) && has_data(fake.all[k].at, fake.all[k].bytes)) return INVALID_VALUE;
      fake.allocated -= (int64_t)fake.all[k].bytes;
      free(fake.all[k].at);
      fake.all[k].at = NULL;
      return CUDA_SUCCESS;
    }
  return INVALID_VALUE;
}

EXPORT CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  WITH_CONTEXT
  if (fake.sticky || flags) return fake.sticky ? fake.sticky : INVALID_VALUE;
  return (*memory = malloc(bytes)) ? CUDA_SUCCESS : OUT_OF_MEMORY;
}
EXPORT CUresult cuMemFreeHost(void *memory) { WITH_CONTEXT return free(memory), CUDA_SUCCESS; }

/* Whether memory was allocated as one. */
static int owns(CUdeviceptr memory, size_t bytes) {
  for (int k = 0; k < MOST_ALLOCATIONS; k++) {
    const char *at = fake.all[k].at;
    if (at && (char *)memory >= at && (char *)memory + bytes <= at + fake.all[k].bytes) return 1;
  }
  return 0;
}

static CUresult copy(void *to, const void *from, size_t bytes, int owned) {
  if (fake.sticky || !owned) return fake.sticky ? fake.sticky : INVALID_VALUE;
  memcpy(to, from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) { WITH_CONTEXT return copy((void *)to, from, bytes, owns(to, bytes)); }
EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { WITH_CONTEXT return copy(to, (void *)from, bytes, owns(from, bytes)); }

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) { WITH_CONTEXT return (void)stream, cuMemcpyHtoD_v2(to, from, bytes); }
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) { WITH_CONTEXT return (void)stream, cuMemcpyDtoH_v2(to, from, bytes); }
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  WITH_CONTEXT
  return (void)stream, copy((void *)to, (void *)from, bytes, owns(to, bytes) && owns(from, bytes));
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream) {
  WITH_CONTEXT
  (void)stream;
  if (fake.sticky || !owns(memory, bytes)) return fake.sticky ? fake.sticky : INVALID_VALUE;
  memset((void *)memory, value, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) { WITH_CONTEXT return *stream = NULL, (void)flags, fake.sticky; }
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) { WITH_CONTEXT return (void)stream, CUDA_SUCCESS; }
EXPORT CUresult cuStreamSynchronize(CUstream stream) { WITH_CONTEXT return (void)stream, fake.sticky; }
EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) { WITH_CONTEXT return *event = calloc(1, sizeof **event), (void)flags, fake.sticky; }
EXPORT CUresult cuEventDestroy_v2(CUevent event) { WITH_CONTEXT return free(event), CUDA_SUCCESS; }
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) { WITH_CONTEXT return event->seconds = now(), (void)stream, fake.sticky; }
EXPORT CUresult cuEventSynchronize(CUevent event) { WITH_CONTEXT return (void)event, fake.sticky; }
EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) { WITH_CONTEXT return *milliseconds = (float)(1e3 * (end->seconds - begin->seconds)), fake.sticky; }

EXPORT CUresult cuGetErrorString(CUresult result, const char **text) {
  switch (result) {
    case OUT_OF_MEMORY: *text = "out of memory"; break;
    case INVALID_DEVICE: *text = "invalid device ordinal"; break;
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case INVALID_IMAGE: *text = "device kernel image is invalid"; break;
    case NO_BINARY: *text = "no kernel image is available for execution on the device"; break;
    case OPERATING_SYSTEM: *text = "OS call failed or operation not supported on this OS"; break;
    case NOT_FOUND: *text = "named symbol not found"; break;
    case INVALID_HANDLE: *text = "invalid resource handle"; break;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; break;
    case LOST: *text = "the device is lost"; break;
    default: *text = "invalid argument";
  }
  return CUDA_SUCCESS;
}
