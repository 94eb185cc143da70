package tuner

import "math"

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
