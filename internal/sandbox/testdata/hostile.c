/* Tries what a sandbox should not allow, one way after the other: hostile LAYER VICTIM_PID TCP_PORT UDP_PORT SOCKET_NAME SHM_KEY HOSTNAME
 * FOLDER. Prints what it could do. Nothing that succeeds does any harm: signals are number 0, files are opened and closed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static struct {
  pid_t victim;
  int tcp, udp;
  const char *socket_name;
  key_t shm;
  const char *host, *folder;
} given;

static int opens(const char *path, int flags) {
  int fd = open(path, flags, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* files: reading, and writing, which is not tried where it would succeed */
static int reads_shadow(void) { return opens("/etc/shadow", O_RDONLY) || opens("/etc/passwd", O_RDONLY); }
static int reads_keys(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/token", given.folder);
  return opens(path, O_RDONLY);
}
static int reads_homes(void) { return opens("/root/.bashrc", O_RDONLY) || opens("/root/.ssh", O_RDONLY) || opens("/home", O_RDONLY); }
static int reads_others_environment(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/environ", given.victim);
  return opens(path, O_RDONLY);
}
static int writes_here(void) { return opens("written", O_WRONLY | O_CREAT); }
static int writes_there(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/written", given.folder);
  return opens(path, O_WRONLY | O_CREAT);
}
static int makes_folders(void) { return mkdir("made", 0700) == 0; }
static int makes_links(void) { return symlink("/etc/shadow", "link") == 0; }
static int changes_itself(void) { return opens("/proc/self/exe", O_WRONLY) || truncate("/proc/self/exe", 0) == 0; }
static int opens_devices(void) { return opens("/dev/mem", O_RDONLY) || opens("/dev/kmsg", O_RDONLY) || opens("/dev/vda", O_RDONLY); }

/* processes */
static int sees_others(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", given.victim);
  return access(path, F_OK) == 0;
}
static int signals_others(void) { return kill(given.victim, 0) == 0; }
static int traces_others(void) { return ptrace(PTRACE_SEIZE, given.victim, 0, 0) == 0; }
static int reads_others_memory(void) {
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)&given, 1};
  return process_vm_readv(given.victim, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

/* network */
static int connects(int kind, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, kind, 0);
  return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && (kind == SOCK_STREAM || send(fd, "x", 1, 0) == 1);
}
static int calls_by_tcp(void) { return connects(SOCK_STREAM, given.tcp); }
static int calls_by_udp(void) { return connects(SOCK_DGRAM, given.udp); }
static int calls_by_abstract_socket(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strcpy(to.sun_path + 1, given.socket_name);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return fd >= 0 && connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(given.socket_name)) == 0;
}

/* ipc, hostname */
static int finds_shared_memory(void) { return shmget(given.shm, 1, 0) >= 0; }
static int tells_the_host(void) {
  char name[256] = {0};
  return gethostname(name, sizeof name - 1) == 0 && strcmp(name, given.host) == 0;
}

/* descriptors */
static int finds_descriptors(void) {
  for (int fd = 3; fd < 1024; fd++)
    if (fcntl(fd, F_GETFD) >= 0) return 1;
  return 0;
}

/* privileges */
static int becomes_root(void) { return setuid(0) == 0 || setresuid(0, 0, 0) == 0; }
static int gains_by_program(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/set-user-id", given.folder);
  if (access(path, X_OK)) return 0;
  execl(path, path, "euid", NULL); /* which prints what it gained */
  return 0;
}

/* calls */
static int forks(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, NULL, 0) == child; /* a signal of its end would stop a process that is traced later */
}
static int makes_namespaces(void) { return unshare(CLONE_NEWUSER) == 0; }
static int makes_sockets(void) {
  int pair[2];
  return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ||
         socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0 || socket(AF_PACKET, SOCK_RAW, 0) >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}
static int signals_all(void) { return kill(-1, 0) == 0; }
static int signals_group(void) { return kill(0, 0) == 0; }
static int is_traced(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0; }
static int outlives(void) { return prctl(PR_SET_PDEATHSIG, 0) == 0; }
static int uses_keys(void) { return syscall(SYS_keyctl, 0, -3, 0) >= 0; }
static int loads_programs(void) { return syscall(SYS_bpf, 0, 0, 0) >= 0 || errno != EPERM; }
static int counts_events(void) { return syscall(SYS_perf_event_open, 0, 0, -1, -1, 0) >= 0 || errno != EPERM; }
static int makes_rings(void) { return syscall(SYS_io_uring_setup, 0, 0) >= 0 || errno != EPERM; }
static int handles_faults(void) { return syscall(SYS_userfaultfd, 0) >= 0; }
static int makes_files_in_memory(void) { return memfd_create("x", 0) >= 0; }
static int watches_files(void) { return inotify_init() >= 0; }
static int opens_by_handle(void) { return syscall(SYS_open_by_handle_at, -1, 0, 0) >= 0 || errno != EPERM; }
static int changes_priority(void) { return setpriority(PRIO_PROCESS, 0, 1) == 0; }
static int types_for_others(void) { return ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM; }
static int fills_pipes(void) { return fcntl(1, F_SETPIPE_SZ, 1 << 20) > 0; }

static const struct {
  const char *layer, *name;
  int (*does)(void);
} ways[] = {
    {"files", "reads_shadow", reads_shadow}, {"files", "reads_keys", reads_keys}, {"files", "reads_homes", reads_homes},
    {"files", "reads_others_environment", reads_others_environment}, {"writing", "writes_here", writes_here}, {"writing", "writes_there", writes_there},
    {"writing", "makes_folders", makes_folders}, {"writing", "makes_links", makes_links}, {"writing", "changes_itself", changes_itself},
    {"files", "opens_devices", opens_devices},
    {"processes", "sees_others", sees_others}, {"processes", "signals_others", signals_others}, {"processes", "traces_others", traces_others}, {"processes", "reads_others_memory", reads_others_memory},
    {"network", "calls_by_tcp", calls_by_tcp}, {"network", "calls_by_udp", calls_by_udp}, {"network", "calls_by_abstract_socket", calls_by_abstract_socket},
    {"ipc", "finds_shared_memory", finds_shared_memory}, {"hostname", "tells_the_host", tells_the_host},
    {"user", "becomes_root", becomes_root},
    {"calls", "forks", forks}, {"calls", "makes_namespaces", makes_namespaces}, {"calls", "makes_sockets", makes_sockets}, {"calls", "signals_all", signals_all},
    {"calls", "signals_group", signals_group}, {"calls", "is_traced", is_traced}, {"calls", "outlives", outlives}, {"calls", "uses_keys", uses_keys},
    {"calls", "loads_programs", loads_programs}, {"calls", "counts_events", counts_events}, {"calls", "makes_rings", makes_rings},
    {"calls", "handles_faults", handles_faults}, {"calls", "makes_files_in_memory", makes_files_in_memory}, {"calls", "watches_files", watches_files},
    {"calls", "opens_by_handle", opens_by_handle}, {"calls", "changes_priority", changes_priority}, {"calls", "fills_pipes", fills_pipes},
    {"calls", "types_for_others", types_for_others}, {"descriptors", "finds_descriptors", finds_descriptors},
    {"privileges", "gains_by_program", gains_by_program},
};

static void *wait_for_ever(void *unused) {
  for (;;) pause();
}

/* What uses up the machine. Each says how far it got. */
static void use_up(const char *what) {
  if (!strcmp(what, "memory")) {
    long long n = 0;
    for (char *volatile p; n < 4096 && (p = malloc(1 << 20)); n++) memset(p, 1, 1 << 20);
    printf("%lld MiB\n", n);
  } else if (!strcmp(what, "threads")) {
    pthread_t t;
    int n = 0;
    while (n < 4096 && pthread_create(&t, NULL, wait_for_ever, NULL) == 0) n++;
    printf("%d threads\n", n);
  } else if (!strcmp(what, "descriptors")) {
    int n = 0;
    while (n < 4096 && dup(1) >= 0) n++;
    printf("%d descriptors\n", n);
  } else if (!strcmp(what, "processor")) {
    for (volatile int k = 0;; k++) {}
  } else if (!strcmp(what, "core")) {
    abort();
  } else if (!strcmp(what, "file")) {
    static char block[1 << 16];
    long long n = 0;
    signal(SIGXFSZ, SIG_IGN);
    while (n < 1 << 10 && write(3, block, sizeof block) == sizeof block) n++;
    printf("%lld KiB\n", n * 64);
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "euid")) return geteuid() == 0 && getuid() != 0 ? puts("gains_by_program") : 0;
  if (argc == 3 && !strcmp(argv[1], "use-up")) return use_up(argv[2]), fflush(stdout), 0;
  if (argc != 9) return 2;
  given.victim = atoi(argv[2]), given.tcp = atoi(argv[3]), given.udp = atoi(argv[4]), given.socket_name = argv[5];
  given.shm = atoi(argv[6]), given.host = argv[7], given.folder = argv[8];
  for (unsigned k = 0; k < sizeof ways / sizeof *ways; k++)
    if ((!strcmp(argv[1], "all") || !strcmp(argv[1], ways[k].layer)) && ways[k].does()) printf("%s\n", ways[k].name), fflush(stdout);
  for (char **variable = environ; *variable && !strcmp(argv[1], "all"); variable++)
    if (strncmp(*variable, "GLIBC_TUNABLES=", 15)) puts("reads_environment");
  return fflush(stdout);
}
