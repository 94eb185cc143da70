package gpu

import (
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// limit is a goal for Tilth on a card.
type limit struct {
	what string
	// steps lists the steps that the goal covers.
	steps []string
	value func(r *result) float64
	// geomean bounds the geometric mean of the figures, each bounds every figure; 0 means no bound.
	geomean, each float64
	// most is set for upper bounds.
	most bool
	unit func(float64) string
}

// limits returns all goals. copies is the rate of the card's memory in GB/s, or 0.
func limits(copies float64) []limit {
	figure := func(name string) func(*result) float64 { return func(r *result) float64 { return r.Values[name] } }
	share := func(r *result) float64 { return ratioOf(r.Values["tuned_gbps"], copies) }
	models, skinny := modelNames(), productNames(product.isSkinny)
	return []limit{
		{"4096³ and 8192³ in bfloat16, × cuBLAS", largeNames(array.BFloat16, "strict"), figure("of_peer"), 0, 0.9, false, bench.Times},
		{"4096³ and 8192³ in TF32, × cuBLAS", largeNames(array.Float32, "fast"), figure("of_peer"), 0, 0.9, false, bench.Times},
		{"4096³ and 8192³ in float32, × cuBLAS", largeNames(array.Float32, "strict"), figure("of_peer"), 0, 1, false, bench.Times},
		{"skinny products in bfloat16, × cuBLAS", skinny, figure("of_peer"), 0, 1.1, false, bench.Times},
		{"skinny products, of the memory's rate", skinny, share, 0, 0.8, false, bench.Percent},
		{"models, × torch.compile", models, figure("of_peer"), 1.2, 0.9, false, bench.Times},
		{"models untuned, × torch.compile", models, figure("untuned_of_peer"), 0.6, 0, false, bench.Times},
		{"a trial, all included", allNames(), figure("trial_s"), 0.030, 0, true, humanize.Seconds},
		{"200 trials a task, × untuned", productNames(hasTime), manyTrials, 1.5, 0, false, bench.Times},
		{"a package's first inference after load", models, figure("first_s"), 0, 0.5, true, humanize.Seconds},
	}
}

// hasTime reports whether a product's time budget should suffice for all trials.
func hasTime(p product) bool { return p.m <= 4096 }

// manyTrials returns the gain of tuning if each task had about 200 trials.
func manyTrials(r *result) float64 {
	if r.Values["trials"] < 0.95*trials*r.Values["tasks"] {
		return 0
	}
	return r.Values["of_untuned"]
}

func ratioOf(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func productNames(keep func(product) bool) (names []string) {
	for _, p := range products() {
		if keep(p) {
			names = append(names, p.step())
		}
	}
	return names
}

func largeNames(d array.DType, numerics string) []string {
	return productNames(func(p product) bool { return !p.isSkinny() && p.dtype == d && p.numerics == numerics })
}

func modelNames() (names []string) {
	for _, m := range allModels() {
		names = append(names, m.step())
	}
	return names
}

func allNames() []string {
	return append(productNames(func(product) bool { return true }), modelNames()...)
}

// figures holds the available figures for a goal.
type figures struct {
	count          int
	geomean, worst float64
}

// measured summarises the measurements relevant to a limit.
func (l limit) measured(of func(step string) *result) (f figures) {
	var values []float64
	for _, step := range l.steps {
		r := of(step)
		if r == nil || l.value(r) <= 0 {
			continue
		}
		v := l.value(r)
		values = append(values, v)
		if f.count == 0 || l.most == (v > f.worst) {
			f.worst = v
		}
		f.count++
	}
	f.geomean = bench.GeometricMean(values)
	return f
}

// met reports whether a limit is met; the answer is definite only if everything was measured.
func (l limit) met(f figures) string {
	keeps := func(v, bound float64) bool { return bound == 0 || v == bound || l.most == (v < bound) }
	switch {
	case f.count == 0:
		return "not measured"
	case !keeps(f.worst, l.each):
		return "**no**"
	case f.count < len(l.steps):
		return "so far"
	case !keeps(f.geomean, l.geomean):
		return "**no**"
	}
	return "yes"
}

// bounds formats the limit.
func (l limit) bounds() string {
	sign, beyond := "≥ ", "none < "
	if l.most {
		sign, beyond = "≤ ", "none > "
	}
	var parts []string
	if l.geomean > 0 {
		parts = append(parts, "geomean "+sign+l.unit(l.geomean))
	}
	if l.each > 0 && l.geomean > 0 {
		parts = append(parts, beyond+l.unit(l.each))
	} else if l.each > 0 {
		parts = append(parts, sign+l.unit(l.each))
	}
	return strings.Join(parts, ", ")
}
