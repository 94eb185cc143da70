/* When enough samples of a candidate were taken. */
#ifndef TILTH_RACE_H
#define TILTH_RACE_H

/* Where the median of what was sampled lies: the narrowest pair of order statistics that holds it with a probability of at least 0.9,
 * or all of the samples where these are too few. */
struct interval {
  double low, high;
};

struct interval race_interval(const double *samples, int n);

/* Whether n >= 1 samples, in the order taken, show that a candidate is slower than `bound`, in seconds: the upper end of the best
 * candidate's interval. `spread` is the standard deviation of a sample of the best.
 *
 * Of independent samples at most one in twenty is taken to be wild, lengthened by something else on the device by any amount. The
 * others exceed their mean by t standard deviations with a probability of at most 1 / (1 + t^2), whatever their distribution
 * (Cantelli's inequality). The candidate is dropped when all n samples lie beyond the t for which the n-th power of the sum of both
 * probabilities is 0.005. So one look drops a candidate that is as fast as the bound with a probability of at most half a per cent, ten
 * looks with at most five, and one that is faster with less. One sample proves nothing, two must be 6.7 deviations away, three 2.6,
 * ten 0.9. The deviation is the largest of the best candidate's, the candidate's own once it has four samples, and a hundredth, so
 * that a few samples that agree by chance prove nothing. Samples of one burst of noise are not independent: what was dropped in a
 * burst is found by the calibration after it (noise.h) and measured again. */
int race_lost(const double *samples, int n, double bound, double spread);

double race_median(const double *samples, int n);

/* The standard deviation of the samples, by their quartiles, which a few wild ones do not move. 0 of less than four. */
double race_spread(const double *samples, int n);

#endif
