/* Runs two packages, each on a thread of its own, and prints what they compute of zeros. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "first.h"
#include "second.h"

struct job {
  const struct tilth_api *api;
  const char *weights;
  int failed;
};

/* Opens a model on one thread, clears its inputs and runs it. */
static void *run(void *argument) {
  struct job *job = argument;
  const struct tilth_api *api = job->api;
  struct tilth_options options = {.size = sizeof options, .threads = 1};
  struct tilth_model *m = api->open_with(job->weights, 0, &options);
  if (!m) {
    fprintf(stderr, "opening the model: %s\n", api->last_error());
    job->failed = 1;
    return NULL;
  }
  for (int32_t k = 0; k < api->input_count(); k++)
    memset(api->input(m, k), 0, (size_t)api->input_tensor(k)->bytes);
  api->run(m);
  for (int32_t k = 0; k < api->output_count(); k++) {
    const struct tilth_tensor *t = api->output_tensor(k);
    if (t->type == TILTH_TYPE_FLOAT32 && t->bytes > 0)
      printf("%s: %g, ...\n", t->name, *(const float *)api->output(m, k));
  }
  api->close(m);
  return NULL;
}

int main(void) {
  struct job jobs[] = {{first_api(), FIRST_WEIGHTS, 0}, {second_api(), SECOND_WEIGHTS, 0}};
  pthread_t threads[2];
  for (int k = 0; k < 2; k++)
    if (pthread_create(&threads[k], NULL, run, &jobs[k])) exit(1);
  for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
  return jobs[0].failed || jobs[1].failed;
}
