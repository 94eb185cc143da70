#include "race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Probability with which one look drops a candidate that is no slower. */
#define LOOK_ERROR 0.005
/* Share of samples that something else lengthens by any amount. */
#define WILD 0.05
/* Least standard deviation of a sample, relative to the bound. */
#define LEAST_SPREAD 0.01
/* Interquartile range of a normal distribution, in standard deviations. */
#define NORMAL_QUARTILES 1.349
#define LEAST_LEVEL 0.9

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sort(double *sorted, const double *samples, int n) {
  memcpy(sorted, samples, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_size);
}

struct interval race_interval(const double *samples, int n) {
  double sorted[MOST_SAMPLES_KEPT];
  sort(sorted, samples, n);
  /* term is the probability of exactly k samples below the median, outside of at most k. */
  double term = ldexp(1, -n), outside = term;
  int k = 0;
  for (; k + 1 < n - 2 - k; k++) {
    term *= (double)(n - k) / (k + 1);
    outside += term;
    if (1 - 2 * outside < LEAST_LEVEL) break;
  }
  return (struct interval){sorted[k], sorted[n - 1 - k]};
}

double race_median(const double *samples, int n) {
  double sorted[MOST_SAMPLES_KEPT];
  sort(sorted, samples, n);
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

double race_spread(const double *samples, int n) {
  double sorted[MOST_SAMPLES_KEPT];
  if (n < 4) return 0;
  sort(sorted, samples, n);
  return (sorted[n - 1 - n / 4] - sorted[n / 4]) / NORMAL_QUARTILES;
}

int race_lost(const double *samples, int n, double bound, double spread) {
  double least = INFINITY, own = race_spread(samples, n);
  for (int k = 0; k < n; k++) least = fmin(least, samples[k]);
  double deviation = fmax(fmax(spread, own), LEAST_SPREAD * bound);
  double beyond = (pow(LOOK_ERROR, 1.0 / n) - WILD) / (1 - WILD);
  return beyond > 0 && least > bound + sqrt(1 / beyond - 1) * deviation;
}
