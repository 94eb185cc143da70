package tuner

import (
	"math"
	"math/rand/v2"
	"testing"
)

// hills returns observations of a smooth function of the first of three dimensions.
func hills(n int) (xs [][]float64, ys []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		x := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
		xs, ys = append(xs, x), append(ys, math.Sin(5*x[0]))
	}
	return xs, ys
}

func TestPredictionsFollowTheObservations(t *testing.T) {
	xs, ys := hills(40)
	f := FitGaussianProcess(GaussianPrior{Dimensions: 3, Variance: 1}, xs, ys, len(xs)).Evaluate([][]float64{{0.2, 0.5, 0.5}, {0.9, 0.1, 0.5}})
	for k, x := range []float64{0.2, 0.9} {
		if got, want := f.Mean(k), math.Sin(5*x); math.Abs(got-want) > 0.1 {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
}

func TestDeviationsAreSmallWhereSomethingWasSeen(t *testing.T) {
	f := FitGaussianProcess(GaussianPrior{Dimensions: 1, Variance: 1}, [][]float64{{0}, {0.1}}, []float64{1, -1}, 2).Evaluate([][]float64{{0.05}, {8}})
	if f.Deviation(0) >= f.Deviation(1) {
		t.Errorf("deviation %v between observations, %v far away", f.Deviation(0), f.Deviation(1))
	}
}

// TestFantasiesMatchObservations compares the deviations with those of a process that has observed the point.
func TestFantasiesMatchObservations(t *testing.T) {
	xs, ys := hills(12)
	s := scales{lengths: []float64{1, 2}, signal: 2, noise: 0.1, trends: []float64{0.5}}
	field := condition(s, xs[:10], ys[:10]).Evaluate([][]float64{xs[10], xs[11], {0.3, 0.3, 0.3}})
	field.Fantasize(0)
	field.Fantasize(1)
	want := condition(s, xs, ys).Evaluate([][]float64{{0.3, 0.3, 0.3}}).Deviation(0)
	if got := field.Deviation(2); math.Abs(got-want) > 1e-9 {
		t.Errorf("deviation %v, want %v", got, want)
	}
}

// TestTrendsExtrapolate checks that predictions beyond the length scale follow the linear trend of the observations.
func TestTrendsExtrapolate(t *testing.T) {
	var xs [][]float64
	var ys []float64
	for k := range 9 {
		x := float64(k-4) / 4
		xs, ys = append(xs, []float64{0.1 * float64(k), x}), append(ys, -0.8*x)
	}
	at := [][]float64{{50, 3}}
	if got := FitGaussianProcess(GaussianPrior{1, []float64{1}, 1}, xs, ys, 9).Evaluate(at).Mean(0); math.Abs(got+2.4) > 0.2 {
		t.Errorf("%v with a trend, want -2.4", got)
	}
	if got := FitGaussianProcess(GaussianPrior{1, []float64{0}, 1}, xs, ys, 9).Evaluate(at).Mean(0); math.Abs(got) > 0.1 {
		t.Errorf("%v without one, want 0", got)
	}
}

func TestEqualPointsAndNoPointsAreFine(t *testing.T) {
	x := []float64{0.5, 0.5}
	f := FitGaussianProcess(GaussianPrior{Dimensions: 2, Variance: 1}, [][]float64{x, x, x, x, x, x, x}, []float64{0, 0, 0, 0, 0, 0, 0}, 7).Evaluate([][]float64{x})
	f.Fantasize(0)
	f.Fantasize(0)
	if m, d := f.Mean(0), f.Deviation(0); math.IsNaN(m) || math.IsNaN(d) {
		t.Errorf("mean %v, deviation %v", m, d)
	}
	if d := FitGaussianProcess(GaussianPrior{Dimensions: 2, Variance: 1}, nil, nil, 0).Evaluate([][]float64{x}).Deviation(0); !(d > 0) {
		t.Errorf("deviation %v before any observation", d)
	}
}
