package tuner

import (
	"math"
	"slices"
)

// GaussianProcess is a Gaussian process with mean 0, conditioned on observations.
type GaussianProcess struct {
	scales
	xs [][]float64
	// factor is the lower triangle of the Cholesky factor of the observations' covariance, row by row.
	// weights is the solution of the covariance for the observations.
	factor  [][]float64
	weights []float64
}

// GaussianPrior describes a process before any observation.
type GaussianPrior struct {
	// Dimensions is the number of leading coordinates of a point, each of about unit range, along which the
	// observed function is smooth.
	Dimensions int
	// Trends holds, for each further coordinate, the variance of its linear coefficient, whose mean is 0.
	Trends []float64
	// Variance is the expected variance of the smooth part. It counts as much as priorWeight observations.
	Variance float64
}

// scales holds the hyperparameters of a process.
type scales struct {
	// lengths holds the length scale of each dimension.
	lengths []float64
	// signal and noise are variances.
	signal, noise float64
	// trends is Prior.Trends.
	trends []float64
}

// covariance returns the covariance of two points, without the noise.
func (s scales) covariance(a, b []float64) float64 {
	sum := 0.0
	for k, l := range s.lengths {
		d := (a[k] - b[k]) / l
		sum += d * d
	}
	return s.signal*matern(sum) + s.trend(a, b)
}

// trend returns the part of a covariance that comes from trends.
func (s scales) trend(a, b []float64) (sum float64) {
	n := len(s.lengths)
	for k, variance := range s.trends {
		sum += variance * a[n+k] * b[n+k]
	}
	return sum
}

// variance returns the prior variance of a point, without the noise.
func (s scales) variance(x []float64) float64 { return s.signal + s.trend(x, x) }

// matern returns the correlation at a squared distance.
func matern(squared float64) float64 {
	r := math.Sqrt(3 * squared)
	return (1 + r) * math.Exp(-r)
}

// condition returns the process after observations. It skips points that the others determine completely.
func condition(s scales, xs [][]float64, ys []float64) *GaussianProcess {
	p := &GaussianProcess{scales: s}
	var kept []float64
	for k, x := range xs {
		row := p.solve(p.covariances(x))
		if rest := s.variance(x) + s.noise - dot(row, row); rest > 1e-9*s.signal {
			p.xs, p.factor = append(p.xs, x), append(p.factor, append(row, math.Sqrt(rest)))
			kept = append(kept, ys[k])
		}
	}
	p.weights = p.solve(kept)
	p.solveTransposed(p.weights)
	return p
}

// covariances returns the covariances of x with all observations.
func (p *GaussianProcess) covariances(x []float64) []float64 {
	list := make([]float64, len(p.xs), len(p.xs)+1)
	for k, o := range p.xs {
		list[k] = p.covariance(x, o)
	}
	return list
}

// solve solves factor · y = b in place.
func (p *GaussianProcess) solve(b []float64) []float64 {
	for k, row := range p.factor {
		b[k] = (b[k] - dot(row[:k], b)) / row[k]
	}
	return b
}

// solveTransposed solves factorᵀ · y = b in place.
func (p *GaussianProcess) solveTransposed(b []float64) {
	for k := len(b) - 1; k >= 0; k-- {
		b[k] /= p.factor[k][k]
		for i, f := range p.factor[k][:k] {
			b[i] -= f * b[k]
		}
	}
}

// dot returns the dot product of a and the first len(a) elements of b.
func dot(a, b []float64) (sum float64) {
	for k, v := range a {
		sum += v * b[k]
	}
	return sum
}

// GaussianField holds the predictions of a process at a list of points. It is not safe for concurrent use.
type GaussianField struct {
	process          *GaussianProcess
	xs               [][]float64
	means, variances []float64
	// solved holds the points' covariances with the observations, divided by the Cholesky factor. Each
	// imagined observation adds a row.
	solved [][]float64
}

// Evaluate evaluates the process at points.
func (p *GaussianProcess) Evaluate(xs [][]float64) *GaussianField {
	f := &GaussianField{process: p, xs: xs, means: make([]float64, len(xs)), variances: make([]float64, len(xs)), solved: make([][]float64, len(xs))}
	for k, x := range xs {
		c := p.covariances(x)
		f.means[k] = dot(p.weights, c)
		f.solved[k] = p.solve(c)
		f.variances[k] = p.variance(x) - dot(c, c)
	}
	return f
}

// Mean returns the predicted mean at point k.
func (f *GaussianField) Mean(k int) float64 { return f.means[k] }

// Deviation returns the predicted standard deviation at point k.
func (f *GaussianField) Deviation(k int) float64 { return math.Sqrt(max(0, f.variances[k])) }

// Fantasize lowers the deviations as an observation at point k would, whatever its value.
func (f *GaussianField) Fantasize(k int) {
	own := f.solved[k]
	scale := math.Sqrt(max(f.variances[k], 0) + f.process.noise)
	for i, x := range f.xs {
		c := (f.process.covariance(x, f.xs[k]) - dot(own, f.solved[i])) / scale
		f.variances[i] -= c * c
		if i != k {
			f.solved[i] = append(f.solved[i], c)
		}
	}
	c := (f.process.variance(f.xs[k]) - dot(own, own)) / scale
	f.solved[k] = append(own, c)
}

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
