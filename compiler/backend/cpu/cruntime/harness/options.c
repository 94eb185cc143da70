#include "options.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 64, MOST_THREADS = 1024 };

static int set(struct options *o, const char *name, const char *value) {
  char *end;
  double number = strtod(value, &end);
  int is_number = *value && !*end && number >= 0;
  if (!strcmp(name, "--kernel")) return o->n_chosen < MOST_CHOSEN ? (o->chosen[o->n_chosen++] = value, 0) : -1;
  if (!strcmp(name, "--visible")) return o->visible = value, 0;
  if (!strcmp(name, "--driver")) return o->driver = value, 0;
  if (!strcmp(name, "--scratch")) return o->scratch = value, 0;
  if (!is_number) return -1;
  if (!strcmp(name, "--threads")) o->threads = (int32_t)number;
  else if (!strcmp(name, "--seed")) o->seed = strtoull(value, NULL, 10);
  else if (!strcmp(name, "--first")) o->first = (int32_t)number;
  else if (!strcmp(name, "--finalists")) o->finalists = number != 0;
  else if (!strcmp(name, "--without")) o->without |= number < 64 ? UINT64_C(1) << (int)number : 0;
  else if (!strcmp(name, "--alike")) o->alike = number != 0;
  else if (!strcmp(name, "--serve")) o->serve = number != 0;
  else if (!strcmp(name, "--compute")) o->compute = number != 0;
  else if (!strcmp(name, "--examine")) o->examine = number != 0;
  else if (!strcmp(name, "--device")) o->device = (int32_t)number;
  else if (!strcmp(name, "--answers-fd")) o->answers_fd = (int32_t)number;
  else if (!strcmp(name, "--incumbent-seconds")) o->incumbent_seconds = number;
  else if (!strcmp(name, "--incumbent-median")) o->incumbent_median = number;
  else if (!strcmp(name, "--incumbent-spread")) o->incumbent_spread = number;
  else if (!strcmp(name, "--calibration-seconds")) o->calibration_seconds = number;
  else if (!strcmp(name, "--patience-seconds")) o->patience_seconds = number;
  else if (!strcmp(name, "--sample-seconds")) o->sample_seconds = number;
  else if (!strcmp(name, "--budget-seconds")) o->budget_seconds = number;
  else if (!strcmp(name, "--sustain-seconds")) o->sustain_seconds = number;
  else if (!strcmp(name, "--samples")) o->samples = (int32_t)number;
  else if (!strcmp(name, "--least-samples")) o->least_samples = (int32_t)number;
  else return -1;
  return 0;
}

int options_parse(struct options *o, int argc, char **argv, const char **wrong) {
  *o = (struct options){.threads = 1, .answers_fd = -1, .sample_seconds = 1e-3, .budget_seconds = 15e-3, .samples = 10};
  int k = 1;
  for (; k + 1 < argc && !strncmp(argv[k], "--", 2); k += 2)
    if (set(o, argv[k], argv[k + 1])) return *wrong = argv[k], -1;
  if (o->serve ? argc > k : argc - k < 2 - o->compute) return *wrong = "REFERENCE.so CANDIDATES.so...", -1;
  if (o->answers_fd < 0) return *wrong = "--answers-fd", -1;
  o->reference = argv[k], o->modules = argv + k + 1, o->n_modules = argc - k - 1;
  if (o->threads < 1 || o->threads > MOST_THREADS) return *wrong = "--threads", -1;
  if (o->samples < 1 || o->samples > MOST_SAMPLES) return *wrong = "--samples", -1;
  return 0;
}
