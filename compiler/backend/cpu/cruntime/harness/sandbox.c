#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The size of a file that a driver's compiler may write. */
#define COMPILED_BYTES (INT64_C(256) << 20)

static void limit(int resource, int64_t value) {
  struct rlimit l = {(rlim_t)value, (rlim_t)value};
  setrlimit(resource, &l);
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define ARCH AUDIT_ARCH_ARM
#elif defined(__riscv)
#define ARCH AUDIT_ARCH_RISCV64
#endif

/* Calls of the x32 interface have this bit; the numbers below do not name them. */
#define X32_CALLS 0x40000000

#ifdef __x86_64__
#define NO_X32 , BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#else
#define NO_X32
#endif

/* Loads the number of a call, and refuses those of other architectures. */
#define NATIVE_CALLS \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) NO_X32

#define DENY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* Allows opening files only for reading; flags is the index of the call's access flags. */
#define READ_ONLY(call, flags) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[flags])), \
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Signals go to this process only: abort() sends one. */
#define SELF_ONLY(call) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* The threads of a pool are moved by the harness; the one that candidates are called on stays where it is. */
#define OTHERS_ONLY(call) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 5), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Allows a call if its argument of that index is, or is not, a value. */
#define ONLY_WITH(call, index, value) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index])), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define NOT_WITH(call, index, value) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index])), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* What would change the process for the candidates after the one that calls it. */
#define DENY_CHANGES \
  DENY(SYS_rt_sigaction), DENY(SYS_sigaltstack), DENY(SYS_setitimer), DENY(SYS_timer_create), DENY(SYS_timerfd_create), DENY(SYS_setrlimit), \
      DENY(SYS_sched_setparam), DENY(SYS_ioprio_set), DENY(SYS_set_mempolicy), DENY(SYS_mbind), DENY(SYS_migrate_pages), \
      DENY(SYS_move_pages), DENY(SYS_mlock), DENY(SYS_mlock2), DENY(SYS_mlockall), DENY(SYS_personality), DENY(SYS_membarrier), \
      DENY(SYS_rseq), DENY(SYS_unshare), DENY(SYS_setns), DENY(SYS_perf_event_open), DENY(SYS_userfaultfd), DENY(SYS_memfd_create), \
      DENY(SYS_pipe2), DENY(SYS_eventfd2), DENY(SYS_epoll_create1), DENY(SYS_inotify_init1), OTHERS_ONLY(SYS_sched_setaffinity), \
      ONLY_WITH(SYS_madvise, 2, MADV_HUGEPAGE)

static void deny_calls(enum sandbox_with with) {
  uint32_t self = (uint32_t)getpid();
  struct sock_filter code[] = {
      NATIVE_CALLS,
      DENY(SYS_tkill), SELF_ONLY(SYS_tgkill), DENY(SYS_rt_sigqueueinfo), DENY(SYS_rt_tgsigqueueinfo),
      DENY(SYS_pidfd_send_signal), DENY(SYS_pidfd_open), DENY(SYS_ftruncate), DENY(SYS_fallocate),
      DENY(SYS_io_uring_setup), DENY(SYS_io_uring_enter), DENY(SYS_io_uring_register), DENY(SYS_process_vm_readv), DENY(SYS_prlimit64),
      DENY(SYS_clone), DENY(SYS_clone3), DENY(SYS_execve), DENY(SYS_execveat), DENY(SYS_socket), DENY(SYS_socketpair), DENY(SYS_ptrace), DENY(SYS_kill),
      DENY(SYS_unlinkat), DENY(SYS_renameat2), DENY(SYS_mkdirat), DENY(SYS_linkat), DENY(SYS_symlinkat), DENY(SYS_truncate),
      DENY(SYS_mount), DENY(SYS_process_vm_writev), DENY(SYS_prctl), DENY(SYS_sched_setscheduler), DENY(SYS_sched_setattr), DENY(SYS_setpriority), DENY(SYS_fchmodat), DENY(SYS_fchownat),
      DENY_CHANGES,
#ifdef SYS_alarm
      DENY(SYS_alarm),
#endif
#ifdef SYS_arch_prctl
      DENY(SYS_arch_prctl),
#endif
#ifdef SYS_fcntl64
      NOT_WITH(SYS_fcntl64, 1, F_SETFL),
#endif
      NOT_WITH(SYS_fcntl, 1, F_SETFL),
#ifdef SYS_fork
      DENY(SYS_fork), DENY(SYS_vfork),
#endif
#ifdef SYS_renameat
      DENY(SYS_renameat),
#endif
#ifdef SYS_ftruncate64 /* calls of their own for 64 bits, on 32 */
      DENY(SYS_ftruncate64), DENY(SYS_truncate64),
#endif
#ifdef SYS_chown32
      DENY(SYS_chown32), DENY(SYS_lchown32), DENY(SYS_fchown32),
#endif
#ifdef SYS_unlink
      DENY(SYS_unlink), DENY(SYS_rename), DENY(SYS_mkdir), DENY(SYS_rmdir), DENY(SYS_link), DENY(SYS_symlink), DENY(SYS_chmod), DENY(SYS_chown),
#endif
      DENY(SYS_openat2), READ_ONLY(SYS_openat, 2),
#ifdef SYS_open
      DENY(SYS_creat), READ_ONLY(SYS_open, 1),
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
#define DENY_WITH_DRIVER                                                                                                              \
  DENY(SYS_ptrace), DENY(SYS_kill), DENY(SYS_tkill), SELF_ONLY(SYS_tgkill), DENY(SYS_rt_sigqueueinfo), DENY(SYS_rt_tgsigqueueinfo),   \
      DENY(SYS_pidfd_send_signal), DENY(SYS_pidfd_open), DENY(SYS_process_vm_readv), DENY(SYS_process_vm_writev), \
      DENY(SYS_mount), DENY(SYS_io_uring_setup), DENY(SYS_symlinkat)
  struct sock_filter with_device[] = {
      NATIVE_CALLS, DENY_WITH_DRIVER, DENY(SYS_execve), DENY(SYS_execveat), DENY(SYS_unlinkat), DENY(SYS_renameat2), DENY(SYS_linkat),
#ifdef SYS_renameat
      DENY(SYS_renameat),
#endif
#ifdef SYS_unlink
      DENY(SYS_unlink), DENY(SYS_rename), DENY(SYS_rmdir), DENY(SYS_link), DENY(SYS_symlink),
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_filter with_compiler[] = {NATIVE_CALLS, DENY_WITH_DRIVER, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (with == SANDBOX_DRIVER) program = (struct sock_fprog){sizeof with_device / sizeof *with_device, with_device};
  if (with == SANDBOX_COMPILING_DRIVER) program = (struct sock_fprog){sizeof with_compiler / sizeof *with_compiler, with_compiler};
  /* On the pool's threads too, and without the slowing down of filtered programs that some kernels hold to be safer. */
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

void sandbox_close(enum sandbox_with with) {
  prctl(PR_SET_DUMPABLE, 0);
  limit(RLIMIT_CORE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  limit(RLIMIT_FSIZE, with == SANDBOX_COMPILING_DRIVER ? COMPILED_BYTES : 0);
  limit(RLIMIT_NOFILE, 256);
  deny_calls(with);
}
