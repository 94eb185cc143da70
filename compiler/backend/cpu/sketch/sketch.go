package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New derives the space of a workload on a target, with the algorithms that numerics allow.
func New(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *space.Space {
	return space.New(w, t, &sketches{plan: analyse(w, t), target: t, numerics: numerics})
}

// sketches are those of a workload; the knobs are of the heaviest nest's. It implements space.Sketch.
type sketches struct {
	plan     *plan
	target   *target.Target
	numerics schedule.Numerics
}

// other is the algorithm that there is beside direct sums; nil where there is none, or the numerics forbid it.
func (k *sketches) other() algorithm {
	if u := k.plan.heaviest(); u != nil && k.numerics >= schedule.Default {
		return u.other
	}
	return nil
}

// Knobs implements space.Sketch.
func (k *sketches) Knobs() []space.Knob {
	if u := k.plan.heaviest(); u != nil {
		return u.sketch.knobs(k.target)
	}
	return nil
}

// Algorithms implements space.Sketch.
func (k *sketches) Algorithms() (values []int64, knobs []space.Knob) {
	if other := k.other(); other != nil {
		return other.algorithms(), other.knobs(k.target)
	}
	return nil, nil
}

// Legal implements space.Sketch.
func (k *sketches) Legal(set space.Settings) error {
	if u := k.plan.heaviest(); u != nil {
		return u.legal(k.target, set)
	}
	return nil
}

// Cost implements space.Sketch.
func (k *sketches) Cost(set space.Settings) float64 {
	if u := k.plan.heaviest(); u != nil {
		return u.cost(k.target, set)
	}
	return 0
}

// Apply implements space.Sketch.
func (k *sketches) Apply(s *schedule.Schedule, set space.Settings) error {
	return k.plan.apply(s, k.target, set)
}

// Unrolls implements space.Sketch: of direct sums, of Winograd's and of Strassen's products.
func (k *sketches) Unrolls() []string { return []string{"ku", "wku", "sku"} }
