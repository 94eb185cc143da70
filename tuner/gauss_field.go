package tuner

import "math"

// GaussianField holds the predictions of a process at a list of points. It is not safe for concurrent use.
type GaussianField struct {
	process          *GaussianProcess
	xs               [][]float64
	means, variances []float64
	// solved holds the points' covariances with the observations, divided by the Cholesky factor. Each
	// imagined observation adds a row.
	solved [][]float64
}

// Over evaluates the process at points.
func (p *GaussianProcess) Over(xs [][]float64) *GaussianField {
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

// Imagine lowers the deviations as an observation at point k would, whatever its value.
func (f *GaussianField) Imagine(k int) {
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
