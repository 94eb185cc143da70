/* A package that tries to harm the machine, its runner or others, and tells by its output how often it could. Nothing that succeeds would do
 * any harm beyond the test. -DWAYS=W(name),... are the ways in order; its input is the number of one, tried by tilth_run. Those that do no
 * harm to their own process are tried when the object is loaded, too, and add to the output. */
#define _GNU_SOURCE
#include "tilth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int reads(const char *path) { return open(path, O_RDONLY) >= 0; }
static int writes(const char *path) { return open(path, O_WRONLY | O_CREAT, 0600) >= 0; }
static void *wait_for_ever(void *unused) {
  for (;;) sleep(3600);
}

static int forks(void) {
  int n = 0;
  for (int k = 0; k < 64; k++) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    n += child > 0;
  }
  return n + (system("true") == 0);
}
static int executes(void) {
  char *none[] = {"x", NULL};
  int loader = open("/lib64/ld-linux-x86-64.so.2", O_RDONLY);
  execve("/lib64/ld-linux-x86-64.so.2", none, none + 1);
  syscall(SYS_execveat, loader, "", none, none + 1, AT_EMPTY_PATH); /* an image of its own could dump core again */
  return 0;
}
static int fills_disk(void) {
  return writes("filler") + writes("/tmp/filler") + writes("/dev/shm/filler") + writes("/var/tmp/filler") + (memfd_create("filler", 0) >= 0) +
         (open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0) + (mkdir("folder", 0700) == 0) + (mknod("/tmp/fifo", S_IFIFO | 0600, 0) == 0);
}
static int calls_network(void) {
  int pair[2];
  return (socket(AF_INET, SOCK_STREAM, 0) >= 0) + (socket(AF_INET6, SOCK_DGRAM, 0) >= 0) + (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) +
         (socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0) + (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
}
static int reads_files(void) {
  return reads(TOKEN) + reads("/etc/shadow") + reads("/etc/passwd") + reads("/root") + reads("/home") + reads("/proc/self/environ") +
         reads("/proc/1/environ") + reads("/sys/kernel") + reads("/dev/mem") + reads("/run") + (getenv("PATH") != NULL);
}
static int changes_files(void) {
  return (symlink(TOKEN, "link") == 0) + (link(TOKEN, "link") == 0) + (rename(TOKEN, "/moved") == 0) + (unlink(TOKEN) == 0) +
         (chmod(TOKEN, 0777) == 0) + (truncate(TOKEN, 0) == 0) + (mount("none", "/nowhere", "tmpfs", 0, "") == 0 || errno != EPERM);
}
static int signals(void) { return (kill(VICTIM, SIGKILL) == 0) + (kill(-1, 0) == 0) + (kill(0, 0) == 0) + (getppid() > 1 && kill(getppid(), 0) == 0); }
static int traces(void) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  return (ptrace(PTRACE_SEIZE, VICTIM, 0, 0) == 0) + (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0) + (process_vm_writev(VICTIM, &here, 1, &there, 1, 0) >= 0) +
         (syscall(SYS_pidfd_open, VICTIM, 0) >= 0);
}
static int gains(void) {
  return (setuid(0) == 0) + (setpriority(PRIO_PROCESS, 0, -20) == 0) + (prctl(PR_SET_PDEATHSIG, 0) == 0) + (unshare(CLONE_NEWUSER) == 0) + (chroot("/") == 0);
}
static int leaves_things(void) { return (shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0) + (setsid() >= 0); }
static int uses_the_kernel(void) {
  return (syscall(SYS_io_uring_setup, 1, 0) >= 0 || errno != EPERM) + (syscall(SYS_bpf, 0, 0, 0) >= 0 || errno != EPERM) + (syscall(SYS_userfaultfd, 0) >= 0) +
         (syscall(SYS_perf_event_open, 0, 0, -1, -1, 0) >= 0 || errno != EPERM) + (syscall(SYS_keyctl, 0, -3, 0) >= 0) +
         (syscall(SYS_add_key, "user", "x", "x", 1, -3) >= 0) + (syscall(SYS_open_by_handle_at, -1, 0, 0) >= 0 || errno != EPERM) +
         (ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM);
}
static int dumps_core(void) { return (prctl(PR_SET_DUMPABLE, 1) == 0) + (prctl(PR_GET_DUMPABLE) != 0); }
static int finds_descriptors(void) {
  int n = 0;
  for (int fd = 16; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0; /* below are its own and the runtime's */
  return n;
}

/* How much of something it gets, which is more than none. */
static int takes_threads(void) {
  pthread_t thread;
  pthread_attr_t small;
  pthread_attr_init(&small), pthread_attr_setstacksize(&small, 64 << 10);
  int n = 0;
  while (n < 8192 && pthread_create(&thread, &small, wait_for_ever, NULL) == 0) n++;
  return n;
}
static int takes_memory(void) {
  int n = 0;
  for (char *volatile p; n < 4096 && (p = malloc(1 << 20)); n++) memset(p, 1, 1 << 20);
  return n;
}
static int takes_disk(void) {
  static char block[1 << 20];
  int n = 0;
  signal(SIGXFSZ, SIG_IGN);
  for (int fd = 3; fd < 16; fd++)
    for (struct stat s; fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && n < 64 && write(fd, block, sizeof block) > 0;) n++;
  return n;
}

/* What ends its process. */
static int loops(void) {
  for (volatile int k = 0;; k++) {}
}
static int floods(void) {
  static char line[1 << 16];
  memset(line, 'x', sizeof line);
  for (;;) write(1, line, sizeof line);
}
static int complains(void) {
  static char line[1 << 16];
  memset(line, 'x', sizeof line);
  for (;;) write(2, line, sizeof line);
}
static int paints(void) {
  static const char text[] = "\033[2J\033]0;owned\007oh \377\n";
  write(2, text, sizeof text - 1);
  _exit(9);
}
static int forges(void) {
  static const char text[] = "{\"result\":{\"packages\":[{\"manifest\":{},\"samples\":[-1]}]}}\n";
  write(1, text, sizeof text - 1);
  _exit(0);
}
static int closes_all(void) {
  for (int fd = 0; fd < 1024; fd++) close(fd);
  return 0;
}
static int crashes(void) { return *(volatile int *)8; }

static int (*const ways[])(void) = {
#define W(name) name
    WAYS
#undef W
};

static int32_t way, before;
static float harm;
__attribute__((constructor)) static void begin(void) {
  for (int k = 0; k < HARMLESS; k++) before += ways[k]();
}

struct tilth_model *tilth_open(const char *weights, int64_t offset) { return (struct tilth_model *)&way; }
void tilth_close(struct tilth_model *model) {}
const char *tilth_last_error(void) { return ""; }
int32_t tilth_input_count(void) { return 1; }
int32_t tilth_output_count(void) { return 1; }
int32_t tilth_call_count(void) { return 0; }
static const int64_t one[] = {1};
static const struct tilth_tensor input = {"way", TILTH_TYPE_INT32, 1, one, 4}, output = {"harm", TILTH_TYPE_FLOAT32, 1, one, 4};
const struct tilth_tensor *tilth_input_tensor(int32_t index) { return &input; }
const struct tilth_tensor *tilth_output_tensor(int32_t index) { return &output; }
void *tilth_input(struct tilth_model *model, int32_t index) { return &way; }
const void *tilth_output(const struct tilth_model *model, int32_t index) { return &harm; }
void tilth_run(struct tilth_model *model) { harm = before + ways[way](); }
void tilth_profile(struct tilth_model *model, double *seconds) {}
void tilth_peak(struct tilth_model *model, double *flops, double *bytes) { *flops = *bytes = 1; }
