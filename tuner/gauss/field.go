package gauss

import "math"

// Field is what a process predicts at a list of points. It is not safe for concurrent use.
type Field struct {
	process *Process
	xs      [][]float64
	// means and variances are the predictions.
	means, variances []float64
	// solved are the points' covariances with the observations, divided by the Cholesky factor; they grow with what is
	// imagined.
	solved [][]float64
}

// Over is the process's field at points.
func (p *Process) Over(xs [][]float64) *Field {
	f := &Field{process: p, xs: xs, means: make([]float64, len(xs)), variances: make([]float64, len(xs)), solved: make([][]float64, len(xs))}
	for k, x := range xs {
		c := p.covariances(x)
		f.means[k] = dot(p.weights, c)
		f.solved[k] = p.solve(c)
		f.variances[k] = p.variance(x) - dot(c, c)
	}
	return f
}

// Mean is what is predicted at point k.
func (f *Field) Mean(k int) float64 { return f.means[k] }

// Deviation is the standard deviation of what is predicted at point k.
func (f *Field) Deviation(k int) float64 { return math.Sqrt(max(0, f.variances[k])) }

// Imagine lowers the deviations by what an observation at point k will tell, whatever it is.
func (f *Field) Imagine(k int) {
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
