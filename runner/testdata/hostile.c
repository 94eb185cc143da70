/* Kernels that try to harm the machine, the runner or other candidates, and say what they could do by a wrong result. Nothing that succeeds
 * would do any harm beyond the test. -DKERNELS=K(name),... selects them, -DCONSTRUCTOR=name what happens when the object is loaded. */
#define _GNU_SOURCE
#include "workload.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef VICTIM
#define VICTIM 1
#endif
#ifndef TOKEN
#define TOKEN "/etc/passwd"
#endif

/* How many sets of data a process is judged on. */
#ifndef PRACTICE
#define PRACTICE 1
#endif

#define HARM(condition) \
  if (condition) Y[0] = 1e9

static void pack(const struct tilth_runtime *rt, void *const *args, void *packed) { memcpy(packed, args[1], 4 * INNER); }

static int reads(const char *path) { return open(path, O_RDONLY) >= 0; }
static int writes(const char *path) { return open(path, O_WRONLY | O_CREAT, 0600) >= 0; }
static void *nothing(void *unused) { return unused; }

KERNEL(bombs) {
  good(rt, args, prepared, workspace);
  pthread_t thread;
  for (int k = 0; k < 64; k++) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    HARM(child > 0);
    HARM(pthread_create(&thread, NULL, nothing, NULL) == 0);
  }
  HARM(system("true") == 0);
}

KERNEL(fills_disk) {
  good(rt, args, prepared, workspace);
  HARM(writes("filler") || writes("/tmp/filler") || writes("/dev/shm/filler") || writes("/filler") || memfd_create("filler", 0) >= 0);
  HARM(mkdir("folder", 0700) == 0 || mkdirat(AT_FDCWD, "/tmp/folder", 0700) == 0);
}

KERNEL(calls_network) {
  good(rt, args, prepared, workspace);
  int pair[2];
  HARM(socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_DGRAM, 0) >= 0 || socket(AF_INET6, SOCK_STREAM, 0) >= 0);
  HARM(socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
}

KERNEL(reads_files) {
  good(rt, args, prepared, workspace);
  HARM(reads(TOKEN) || reads("/etc/shadow") || reads("/etc/passwd") || reads("/root/.ssh") || reads("/proc/self/environ") || reads("/proc/1/environ"));
  HARM(opendir("/proc") || opendir("/boot") || getenv("PATH") || getenv("HOME"));
}

KERNEL(signals) {
  good(rt, args, prepared, workspace);
  HARM(kill(VICTIM, SIGKILL) == 0 || kill(-1, 0) == 0 || kill(0, 0) == 0);
  HARM(getppid() > 1 && kill(getppid(), 0) == 0);
}

KERNEL(traces) {
  good(rt, args, prepared, workspace);
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  HARM(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 || ptrace(PTRACE_SEIZE, VICTIM, 0, 0) == 0 || process_vm_writev(VICTIM, &here, 1, &there, 1, 0) >= 0);
}

KERNEL(links) {
  good(rt, args, prepared, workspace);
  HARM(symlink(TOKEN, "link") == 0 || link(TOKEN, "link") == 0 || rename(TOKEN, "/moved") == 0 || unlink(TOKEN) == 0 || chmod(TOKEN, 0777) == 0);
}

KERNEL(gains) {
  good(rt, args, prepared, workspace);
  HARM(setuid(0) == 0 && getuid() == 0);
  execl("/usr/bin/su", "su", "-c", "true", NULL);
  execl("/bin/mount", "mount", NULL);
  HARM(setpriority(PRIO_PROCESS, 0, -20) == 0 || prctl(PR_SET_PDEATHSIG, 0) == 0);
}

KERNEL(leaves_things) {
  good(rt, args, prepared, workspace);
  HARM(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0);
}

KERNEL(closes_report) {
  good(rt, args, prepared, workspace);
  for (int fd = 0; fd < 1024; fd++) close(fd);
}

/* Well-formed, but without the word that only the harness knows. */
KERNEL(forges_report) {
  static const char forged[] = "{\"event\":\"outcome\",\"index\":0,\"kernel\":\"forges_report\",\"status\":\"ok\",\"message\":\"\",\"run_seconds\":1,"
                               "\"relative_error\":0,\"samples\":[1e-12]}\n";
  for (int fd = 0; fd < 256; fd++) write(fd, forged, sizeof forged - 1);
  for (;;) pause();
}

/* Right when it is verified the first time, and fast ever after. */
KERNEL(skips_work) {
  static int computed;
  if (!computed++) good(rt, args, prepared, workspace);
}

/* Computes now and then. */
KERNEL(skips_most) {
  static int runs;
  if (runs++ % 9973 == 0) good(rt, args, prepared, workspace);
}

/* Right on the data of its first run, and fast ever after. */
KERNEL(copies) {
  static float answer[ROWS];
  static int computed;
  if (!computed++) good(rt, args, prepared, workspace), memcpy(answer, args[2], sizeof answer);
  memcpy(args[2], answer, sizeof answer);
}

/* What liars save themselves. */
KERNEL(works) {
  for (int k = 0; k < 100; k++) good(rt, args, prepared, workspace);
}

static struct {
  float key, answer[ROWS];
} known[64];
static unsigned answers;

/* Puts out what it computed of the data before, which it knows again by a glance at them. */
static int remembers(void *const *args) {
  const float *x = args[0];
  for (unsigned k = 0; k < answers; k++)
    if (known[k].key == x[0]) {
      memcpy(args[2], known[k].answer, sizeof known[k].answer);
      return 1;
    }
  return 0;
}

static void learns(void *const *args) {
  const float *x = args[0];
  known[answers].key = x[0];
  memcpy(known[answers++].answer, args[2], sizeof known[0].answer);
}

KERNEL(memoises) {
  if (remembers(args)) return;
  works(rt, args, prepared, workspace);
  if (answers < sizeof known / sizeof *known) learns(args);
}

/* Takes what it has not seen for something else, once it knows all that its process is judged on. */
KERNEL(guesses) {
  if (remembers(args)) return;
  if (answers == PRACTICE) {
    memcpy(args[2], known[0].answer, sizeof known[0].answer);
    return;
  }
  works(rt, args, prepared, workspace);
  learns(args);
}

KERNEL(calls_the_harness) {
  good(rt, args, prepared, workspace);
  HARM(dlsym(RTLD_DEFAULT, "report_outcome") || dlsym(RTLD_DEFAULT, "judge_hand_in") || dlsym(RTLD_DEFAULT, "main"));
}

/* The word that begins each line of the report, which lies in the harness's data, behind its code. */
static const char *word(const char *code) {
  const char *page = (const char *)((uintptr_t)code & -4096);
  unsigned char there;
  for (int k = 0; k < 1024; k++, page += 4096)
    for (int i = 0, n = 0; i < 4096 && mincore((void *)page, 4096, &there) == 0; i++) {
      n = page[i] >= 'A' && page[i] <= 'Z' || page[i] >= '2' && page[i] <= '7' ? n + 1 : 0;
      if (n == 64) return page + i - 63;
    }
  return NULL;
}

/* Says that it is right and fast, and that the one after it is wrong, in the harness's own words. */
KERNEL(forges_verdicts) {
  static char text[4096];
  const char *w = word(__builtin_return_address(0));
  good(rt, args, prepared, workspace);
  if (!w) return;
  int n = snprintf(text, sizeof text,
                   "%.64s{\"event\":\"outcome\",\"index\":0,\"kernel\":\"forges_verdicts\",\"status\":\"ok\",\"message\":\"\",\"run_seconds\":1,\"samples\":[1e-12]}\n"
                   "%.64s{\"event\":\"start\",\"index\":1}\n"
                   "%.64s{\"event\":\"outcome\",\"index\":1,\"kernel\":\"slow\",\"status\":\"wrong\",\"message\":\"y\",\"run_seconds\":1,\"samples\":[]}\n",
                   w, w, w);
  for (int fd = 3; fd < 256; fd++) write(fd, text, n);
}

/* Whether the kernel can read there. */
static int readable(const void *p) {
  uint64_t none = 0;
  return syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, NULL, 8) == 0 && syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8) == 0;
}

/* Where the harness hands outputs in: what some pointer in its data points to that begins with those of the first run. */
static char *handed_in(const char *code) {
  const char *page = (const char *)((uintptr_t)code & -4096);
  unsigned char there;
  for (int k = 0; k < 1024; k++, page += 4096)
    for (int i = 0; i < 4096 && mincore((void *)page, 4096, &there) == 0; i += 8) {
      char *p = *(char *const *)(page + i);
      if (p && (uintptr_t)p % 4096 == 0 && readable(p) && memcmp(p, known[0].answer, sizeof known[0].answer) == 0) return p;
    }
  return NULL;
}

/* Remembers the data of samples. In an examination it puts a group of data off, and computes it in the time of the next. */
KERNEL(defers) {
  enum { GROUP = 4, FIRST = 1 + GROUP, SLOT = (4 * ROWS + 63) / 64 * 64 };
  static float late[GROUP][ROWS * INNER];
  static char *slots;
  static unsigned fresh;
  if (remembers(args)) return;
  if (fresh == 1) slots = handed_in(__builtin_return_address(0));
  unsigned k = fresh++ - FIRST;
  if (k < GROUP) {
    memcpy(late[k], args[0], sizeof late[k]);
    return;
  }
  works(rt, args, prepared, workspace);
  if (answers < sizeof known / sizeof *known) learns(args);
  for (unsigned i = 0; k == GROUP && slots && i < GROUP; i++) {
    void *again[] = {late[i], args[1], slots + i * SLOT};
    works(rt, again, prepared, workspace);
  }
}

static int speed = 1;

/* The clock as it was, or one that is slower. */
static int slow_clock(clockid_t id, struct timespec *t) {
  static int64_t begin;
  syscall(SYS_clock_gettime, id, t);
  int64_t now = INT64_C(1000000000) * t->tv_sec + t->tv_nsec;
  begin = begin ? begin : now;
  now = begin + (now - begin) / speed;
  t->tv_sec = now / 1000000000, t->tv_nsec = now % 1000000000;
  return 0;
}

/* Puts a jump at the beginning of a function. */
static void patch(void *function, void *to) {
  char *page = (char *)((uintptr_t)function & -4096);
  if (!function || mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
#if defined(__x86_64__)
  unsigned char jump[12] = {0x48, 0xB8, [10] = 0xFF, 0xE0};
  memcpy(jump + 2, &to, 8);
  memcpy(function, jump, sizeof jump);
#elif defined(__aarch64__)
  uint32_t jump[4] = {0x58000050, 0xD61F0200};
  memcpy(jump + 2, &to, 8);
  memcpy(function, jump, sizeof jump);
  __builtin___clear_cache(function, (char *)function + sizeof jump);
#endif
}

/* Works as it should, by a clock of its own. */
KERNEL(slows_the_clock) {
  if (speed == 1) speed = 256, patch(dlsym(RTLD_DEFAULT, "clock_gettime"), slow_clock);
  works(rt, args, prepared, workspace);
}

/* Makes each function of a rival's object return at once. */
static int empty(struct dl_phdr_info *info, size_t size, void *self) {
  (void)size, (void)self;
  if (!info->dlpi_name[0] || strstr(info->dlpi_name, "/lib") || strstr(info->dlpi_name, "vdso")) return 0;
  for (int k = 0; k < info->dlpi_phnum; k++) {
    ElfW(Phdr) *part = &info->dlpi_phdr[k];
    char *begin = (char *)info->dlpi_addr + part->p_vaddr;
    int own = begin <= (char *)empty && (char *)empty < begin + part->p_memsz;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || own) continue;
    char *page = (char *)((uintptr_t)begin & -4096);
    if (mprotect(page, (size_t)(begin + part->p_memsz - page), PROT_READ | PROT_WRITE | PROT_EXEC)) continue;
#if defined(__x86_64__)
    memset(begin, 0xC3, part->p_memsz);
#elif defined(__aarch64__)
    for (size_t i = 0; i < part->p_memsz / 4; i++) ((uint32_t *)begin)[i] = 0xD65F03C0;
    __builtin___clear_cache(begin, begin + part->p_memsz);
#endif
  }
  return 0;
}

/* Those after it compute nothing any more. */
KERNEL(spoils_rivals) {
  static int runs;
  good(rt, args, prepared, workspace);
  if (++runs == 3) dl_iterate_phdr(empty, 0);
}

KERNEL(sleeps) {
  signal(SIGTERM, SIG_IGN), signal(SIGABRT, SIG_IGN), signal(SIGHUP, SIG_IGN);
  for (;;) sleep(3600);
}

__attribute__((visibility("hidden"))) void *__dso_handle; /* atexit wants it */

static void hang(void) {
  for (;;) pause();
}

KERNEL(hangs_at_exit) {
  good(rt, args, prepared, workspace);
  atexit(hang);
}

static void crashes(void) { *(volatile int *)8 = 0; }
static void exits(void) { _exit(0); }
static void escapes(void) {
  if (fork() == 0) _exit(0);
  if (reads("/etc/shadow") || socket(AF_INET, SOCK_STREAM, 0) >= 0 || writes("/tmp/filler")) exit(7);
}
static void nothing_special(void) {}

#ifndef CONSTRUCTOR
#define CONSTRUCTOR nothing_special
#endif
__attribute__((constructor)) static void begin(void) { CONSTRUCTOR(); }
__attribute__((destructor)) static void end(void) { hang(); }

static const struct tilth_pack packed = {4 * INNER, pack};
static const struct tilth_pack *const packs[] = {&packed};
#define K(name) {#name, 1, packs, name, 128, 64}
static const struct tilth_kernel kernels[] = {KERNELS};
const struct tilth_module tilth_module = {TILTH_ABI, 3, args, sizeof kernels / sizeof *kernels, kernels};
