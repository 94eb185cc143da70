/* What the inner wall leaves a harness whose candidates are data, beside a device's driver: each call is tried once, and must fail for want of
 * permission, or succeed. */
#define _GNU_SOURCE
#include "sandbox.c"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int bad;

static void expect(long result, int allowed, const char *what) {
  int refused = result == -1 && errno == EPERM;
  if (allowed ? result < 0 : !refused) printf("%s: %ld, %s\n", what, result, result < 0 ? strerror(errno) : "allowed"), bad = 1;
}
#define REFUSED(call) errno = 0, expect((long)(call), 0, #call)
#define ALLOWED(call) errno = 0, expect((long)(call), 1, #call)

/* A thread's name is a file, too, which is not counted as one that grows, and is there for a process that cannot be dumped. */
static void *named(void *yes) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)syscall(SYS_gettid));
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  return file >= 0 && write(file, "named", 5) == 5 && close(file) == 0 ? yes : NULL;
}

static int starts_thread(void) {
  pthread_t thread;
  void *is_named = NULL;
  return pthread_create(&thread, NULL, named, &is_named) || pthread_join(thread, &is_named) || !is_named ? -1 : 0;
}

int main(int argc, char **argv) {
  char *const none[] = {NULL};
  if (argc != 2 || chdir(argv[1])) return 2;
  int file = open("kept", O_CREAT | O_WRONLY, 0600), folder = mkdir("folder", 0700);
  pid_t parent = getppid();
  if (file < 0 || folder) return 2;
  sandbox_close(SANDBOX_DRIVER);

  /* Programs, and other processes. */
  REFUSED(execve("/bin/false", none, none));
  REFUSED(syscall(SYS_execveat, AT_FDCWD, "/bin/false", none, none, 0));
  REFUSED(kill(parent, 0));
  REFUSED(kill(getpid(), 0));
  REFUSED(syscall(SYS_tgkill, parent, parent, 0));
  REFUSED(syscall(SYS_tkill, parent, 0));
  REFUSED(ptrace(PTRACE_TRACEME, 0, 0, 0));
  REFUSED(syscall(SYS_pidfd_open, parent, 0));
  REFUSED(syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0));
  REFUSED(syscall(SYS_process_vm_writev, parent, NULL, 0, NULL, 0, 0));
  REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
  /* What others have in the file system. */
  REFUSED(unlink("kept"));
  REFUSED(unlinkat(AT_FDCWD, "folder", AT_REMOVEDIR));
  REFUSED(rmdir("folder"));
  REFUSED(rename("kept", "other"));
  REFUSED(link("kept", "other"));
  REFUSED(symlink("kept", "other"));
  /* What drivers do: they open files for reading and writing, talk to services of the system, start threads and name them. */
  ALLOWED(open("kept", O_RDWR));
  ALLOWED(open("made", O_CREAT | O_WRONLY, 0600));
  ALLOWED(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  ALLOWED(starts_thread());
  ALLOWED(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0));
  /* No file grows, whoever opened it. */
  signal(SIGXFSZ, SIG_IGN);
  if (write(file, "x", 1) != -1 || errno != EFBIG) puts("a file grows"), bad = 1;
  return bad;
}
