/* How often the race drops a candidate that is as fast as the best, and one that is slower, by samples of several distributions. */
#define _GNU_SOURCE
#include "race.c"

#include <stdio.h>

enum { RACES = 20000, LOOKS = 10 };

static double uniform(void) { return (rand() + 0.5) / (RAND_MAX + 1.0); }

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform()); }

/* Samples of mean 1 (but for bursts) and deviation 0.02. */
static double calm_noise(void) { return 1 + 0.02 * normal(); }
static double skewed_noise(void) { return 0.98 - 0.02 * log(uniform()); }
static double wild_noise(void) { return calm_noise() * (uniform() < 0.05 ? 1 + uniform() : 1); }

/* Share of races that a candidate so many times as slow as the best loses, and how many samples it took. */
static double lost(double (*noise)(void), double slower, double *samples_taken) {
  int dropped = 0;
  long taken = 0;
  for (int r = 0; r < RACES; r++) {
    double samples[LOOKS];
    int n = 0, out = 0;
    while (n < LOOKS && !out) {
      samples[n++] = slower * noise();
      out = race_lost(samples, n, 1, 0.02);
    }
    dropped += out, taken += n;
  }
  *samples_taken = (double)taken / RACES;
  return (double)dropped / RACES;
}

static int bad;

static void expect(int ok, const char *noise, double slower, double share, double samples) {
  if (!ok) printf("%s noise, %g times as slow: %.4f lost after %.1f samples\n", noise, slower, share, samples), bad = 1;
}

int main(void) {
  static const struct {
    const char *name;
    double (*noise)(void);
  } noises[] = {{"calm", calm_noise}, {"skewed", skewed_noise}, {"wild", wild_noise}};
  for (int k = 0; k < 3; k++) {
    double samples, share = lost(noises[k].noise, 1, &samples);
    expect(share <= 0.05, noises[k].name, 1, share, samples);
    share = lost(noises[k].noise, 0.97, &samples);
    expect(share <= 0.01, noises[k].name, 0.97, share, samples);
    share = lost(noises[k].noise, 1.1, &samples);
    expect(share >= 0.95 && samples <= 5, noises[k].name, 1.1, share, samples);
    share = lost(noises[k].noise, 1.5, &samples);
    expect(share >= 0.999 && samples <= 2.5, noises[k].name, 1.5, share, samples);
  }
  double three[] = {3, 1, 2}, eight[] = {8, 1, 7, 2, 6, 3, 5, 4};
  struct interval i = race_interval(three, 3), j = race_interval(eight, 8);
  if (i.low != 1 || i.high != 3 || j.low != 2 || j.high != 7) printf("intervals %g-%g, %g-%g\n", i.low, i.high, j.low, j.high), bad = 1;
  return bad;
}
