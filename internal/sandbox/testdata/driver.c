/* What the drivers of devices do with /proc as they start: they name a thread by its file, look themselves up, and read what the kernel has.
 * A line is printed for each that fails. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t thread_number;
static sem_t started;

static void *wait_for_ever(void *unused) {
  thread_number = gettid();
  sem_post(&started);
  for (;;) pause();
}

static void check(int holds, const char *what) {
  if (!holds) printf("%s: %s\n", what, strerror(errno)), fflush(stdout);
}

static int names_thread(const char *name) {
  char path[64], got[64] = {0};
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread_number);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), length = strlen(name);
  if (file < 0 || write(file, name, length) != length || close(file)) return 0;
  file = open(path, O_RDONLY);
  return file >= 0 && read(file, got, sizeof got - 1) == length + 1 && strncmp(got, name, length) == 0 && close(file) == 0;
}

static int reads(const char *path) {
  char byte;
  int file = open(path, O_RDONLY);
  return file >= 0 && read(file, &byte, 1) == 1 && close(file) == 0;
}

static int finds_itself(void) {
  char path[64], file[4096];
  struct stat s;
  snprintf(path, sizeof path, "/proc/%d/ns/pid", getpid());
  if (stat(path, &s)) return 0;
  snprintf(path, sizeof path, "/proc/%d/exe", getpid());
  return readlink(path, file, sizeof file) > 0;
}

/* The first one of a namespace is alone in it. */
static int sees_others(void) {
  int n = 0;
  DIR *all = opendir("/proc");
  for (struct dirent *e; all && (e = readdir(all));) n += isdigit((unsigned char)e->d_name[0]) != 0;
  return !all || closedir(all) || n != 1;
}

static void look(const char *name) {
  check(names_thread(name), "naming a thread");
  check(reads("/proc/self/maps") && reads("/proc/self/status"), "reading of itself");
  check(reads("/proc/devices") && reads("/proc/cpuinfo") && reads("/proc/sys/vm/mmap_min_addr"), "reading of the machine");
  check(finds_itself(), "finding itself");
}

int main(int argc, char **argv) {
  pthread_t thread;
  struct rlimit none = {0, 0};
  int alone = argc == 2 && strcmp(argv[1], "alone") == 0;
  if (sem_init(&started, 0, 0) || pthread_create(&thread, NULL, wait_for_ever, NULL)) return 2;
  while (sem_wait(&started)) {}
  look("before");
  /* The harness's inner wall. */
  prctl(PR_SET_DUMPABLE, 0);
  setrlimit(RLIMIT_FSIZE, &none);
  look("behind the wall");
  check(!alone || !sees_others(), "being alone");
  check(!alone || access("/proc/sys/kernel/core_pattern", W_OK) != 0, "keeping the machine's settings");
  return fflush(stdout);
}
