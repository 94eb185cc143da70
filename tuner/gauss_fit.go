// This file implements Gaussian process regression: predictions with uncertainties from few observations.
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1. The kernel is
// Matérn's with ν = 3/2 (equation 4.17) and one length per dimension, plus a kernel of linear trends (section 2.7).

package tuner

import (
	"math"
	"slices"
)

const (
	// firstLength is the initial length: twice the range of a dimension.
	firstLength = 2
	// firstNoise is the initial noise, as a share of the variance.
	firstNoise = 1.0 / 30
	// priorWeight is the number of observations that the prior's variance is worth.
	priorWeight = 2
	// minVariance keeps the covariance matrix well conditioned.
	minVariance = 1e-4
	// fitPasses is the number of passes over the scales.
	fitPasses = 2
	// minObservations is the minimum number of observations to fit scales to.
	minObservations = 6
)

// FitGaussianProcess returns a process conditioned on all observations. Its scales maximise the likelihood of the
// first fit observations, by coordinate ascent.
func FitGaussianProcess(prior GaussianPrior, xs [][]float64, ys []float64, fit int) *GaussianProcess {
	s := scales{trends: prior.Trends, lengths: slices.Repeat([]float64{firstLength}, prior.Dimensions), signal: max(prior.signal(ys), minVariance)}
	s.noise = max(s.signal*firstNoise, minVariance)
	if fit = min(fit, len(xs)); fit >= minObservations {
		newAscent(&s, xs[:fit], ys[:fit]).climb()
	}
	return condition(s, xs, ys)
}

// signal returns the initial variance of the smooth part.
func (p GaussianPrior) signal(ys []float64) float64 {
	return (dot(ys, ys) + priorWeight*p.Variance) / (float64(len(ys)) + priorWeight)
}

// ascent searches for the scales of maximum likelihood.
type ascent struct {
	*scales
	xs [][]float64
	ys []float64
	// squared holds the squared distance of each pair of observations i > j.
	squared []float64
	// factor is scratch space for the lower triangle of the Cholesky factor, row by row.
	factor []float64
	best   float64
}

func newAscent(s *scales, xs [][]float64, ys []float64) *ascent {
	n := len(xs)
	a := &ascent{scales: s, xs: xs, ys: ys, squared: make([]float64, n*(n-1)/2), factor: make([]float64, n*(n+1)/2)}
	for k, l := range s.lengths {
		a.move(k, math.Inf(1), l)
	}
	a.best = a.likelihood()
	return a
}

// move updates the squared distances after a change of a length.
func (a *ascent) move(k int, from, to float64) {
	by := 1/(to*to) - 1/(from*from)
	at := 0
	for i, x := range a.xs {
		for _, y := range a.xs[:i] {
			d := x[k] - y[k]
			a.squared[at] += d * d * by
			at++
		}
	}
}

func (a *ascent) climb() {
	for range fitPasses {
		for k := range a.lengths {
			_ = a.length(k, 2) || a.length(k, 0.5)
		}
		_ = a.scale(&a.signal, 2) || a.scale(&a.signal, 0.5)
		_ = a.scale(&a.noise, 3) || a.scale(&a.noise, 1.0/3)
	}
}

// length multiplies a length by a factor if that increases the likelihood.
func (a *ascent) length(k int, by float64) bool {
	old := a.lengths[k]
	a.move(k, old, old*by)
	if a.better() {
		a.lengths[k] = old * by
		return true
	}
	a.move(k, old*by, old)
	return false
}

// scale multiplies a variance by a factor if that increases the likelihood.
func (a *ascent) scale(v *float64, by float64) bool {
	old := *v
	*v = max(old*by, minVariance/100)
	if a.better() {
		return true
	}
	*v = old
	return false
}

func (a *ascent) better() bool {
	l := a.likelihood()
	if l <= a.best+1e-9 {
		return false
	}
	a.best = l
	return true
}

// likelihood returns the log-likelihood of the observations, up to a constant.
func (a *ascent) likelihood() float64 {
	sum, pair, row := 0.0, 0, 0
	half := make([]float64, len(a.ys))
	for i, y := range a.ys {
		own := a.factor[row : row+i+1]
		before, rest := 0, a.variance(a.xs[i])+a.noise
		for j := range i {
			other := a.factor[before : before+j+1]
			before += j + 1
			c := (a.signal*matern(max(0, a.squared[pair])) + a.trend(a.xs[i], a.xs[j]) - dot(own[:j], other)) / other[j]
			own[j] = c
			rest -= c * c
			pair++
		}
		own[i] = math.Sqrt(max(rest, minVariance*1e-3))
		half[i] = (y - dot(own[:i], half)) / own[i]
		sum -= math.Log(own[i]) + half[i]*half[i]/2
		row += i + 1
	}
	return sum
}
