/* Opens a package with options and prints how many threads it got, and where, or why it could not be opened. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "object.h"

struct longer {
  struct tilth_options options;
  int64_t later;
};

static const char *weights;

static void say(const char *what, const struct tilth_options *o) {
  struct tilth_model *m = CALL(tilth_open_with)(weights, 0, o);
  if (m) printf("%s: %d\n", what, CALL(tilth_threads)(m));
  else printf("%s: %s\n", what, CALL(tilth_last_error)());
  CALL(tilth_close)(m);
}

static int first_cpu(void) {
  cpu_set_t set;
  int cpu = 0;
  sched_getaffinity(0, sizeof set, &set);
  while (!CPU_ISSET(cpu, &set)) cpu++;
  return cpu;
}

/* How many threads beside this one may run on one processor alone. */
static int confined(void) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  for (struct dirent *e; (e = readdir(tasks));) {
    cpu_set_t set;
    int id = atoi(e->d_name);
    if (id > 0 && id != gettid() && sched_getaffinity(id, sizeof set, &set) == 0) n += CPU_COUNT(&set) == 1;
  }
  closedir(tasks);
  return n;
}

/* Where threads are while a model is open on a processor, and that the caller goes back to where it was. */
static void look(const struct tilth_options *o) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  struct tilth_model *m = CALL(tilth_open_with)(weights, 0, o);
  CALL(tilth_run)(m);
  sched_getaffinity(0, sizeof after, &after);
  printf("confined: %d, the caller is %s\n", confined(), CPU_EQUAL(&before, &after) ? "not" : "too");
  CALL(tilth_close)(m);
}

int main(int argc, char **argv) {
  object = dlopen(argv[1], RTLD_NOW);
  if (!object) return 1;
  weights = argv[2];
  int64_t size = sizeof(struct tilth_options);
  int32_t here[] = {first_cpu(), first_cpu()}, none[] = {-1}, far[] = {1000000};
  say("none", NULL);
  say("defaults", &(struct tilth_options){size});
  say("one", &(struct tilth_options){size, 1});
  say("many", &(struct tilth_options){size, 1000});
  say("negative", &(struct tilth_options){size, -2});
  say("one processor", &(struct tilth_options){size, 0, 2, here});
  say("one processor for all", &(struct tilth_options){size, 3, 1, here});
  look(&(struct tilth_options){size, 3, 1, here});
  say("no such processor", &(struct tilth_options){size, 0, 1, none});
  say("nor this", &(struct tilth_options){size, 0, 1, far});
  say("no list", &(struct tilth_options){size, 0, 1, NULL});
  say("no size", &(struct tilth_options){0});
  say("older", &(struct tilth_options){16, 2, 0, (const int32_t *)1});
  struct longer later = {{sizeof later, 2}, 0};
  say("later, unset", &later.options);
  later.later = 1;
  say("later, set", &later.options);
  return 0;
}
