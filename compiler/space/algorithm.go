package space

import (
	"fmt"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// The values of the knob "alg", which says how the heaviest reduction is computed: directly, by Winograd's F(m x m,
// kernel), whose value is m, by F(4x2, kernel), which reads fewer weights than the largest and multiplies less than
// the smallest, or by Strassen's algorithm, whose value is the number of its products, or ten times that where the
// sums of the constant are computed by the kernel.
const (
	AlgorithmKnob = "alg"
	direct        = 0
	smallest      = 2
	largest       = 4
	tall          = 42
	seven         = 7
	sevenNow      = 70
)

// outputTile is how many rows and columns of outputs an algorithm of Winograd computes at a time.
func outputTile(alg int64) (rows, columns int64) {
	if alg == tall {
		return largest, smallest
	}
	return alg, alg
}

// algorithm is a sketch that computes a reduction otherwise than as its direct sum.
type algorithm interface {
	sketch
	// algorithms are the values of the knob that choose this sketch, ascending.
	algorithms() []int64
	// seeds are points that are known to be good with a register file.
	seeds(registers int) []string
}

// otherAlgorithm is what may compute the reduction acc in place of the direct sum x; nil when nothing may. The
// transforms of Winograd's algorithm are computed for one output alone.
func otherAlgorithm(s *schedule.Schedule, acc *schedule.Stage, t *target.Target, x *tile, alone bool) algorithm {
	if w := newWinograd(s, acc, t); w != nil && alone {
		return w
	}
	if p := newStrassen(s, acc, t, x); p != nil {
		return p
	}
	return nil
}

// addAlgorithms puts the choice of the algorithm before the knobs of the direct sum and those of the others behind
// them. The knobs of an algorithm that is not chosen are at their first value, so that no two points are the same
// schedule for it.
func (s *Space) addAlgorithms(u *unit, t *target.Target) {
	if u.other == nil {
		return
	}
	s.Knobs = append([]Knob{{AlgorithmKnob, append([]int64{direct}, u.other.algorithms()...)}}, s.Knobs...)
	s.others = len(s.Knobs)
	s.Knobs = append(s.Knobs, u.other.knobs(t)...)
}

// Active reports whether knob k means something at p: knobs of other algorithms than that of p do not.
func (s *Space) Active(p Point, k int) bool {
	switch {
	case s.others == 0 || k == 0:
		return true
	case s.isDirect(p):
		return k < s.others
	}
	return k >= s.others
}

// isDirect reports whether p computes direct sums, in a space that has other algorithms.
func (s *Space) isDirect(p Point) bool { return s.Knobs[0].Values[p[0]] == direct }

// canonical puts the knobs that mean nothing at p to their first value, in place.
func (s *Space) canonical(p Point) Point {
	for k := range p {
		if !s.Active(p, k) {
			p[k] = 0
		}
	}
	return p
}

// checkCanonical refuses a second way to write a point.
func (s *Space) checkCanonical(p Point) error {
	for k, v := range p {
		if v != 0 && !s.Active(p, k) {
			return fmt.Errorf("space: knob %s is not of the algorithm that knob %s chooses", s.Knobs[k].Name, AlgorithmKnob)
		}
	}
	return nil
}

// draw is any point, legal or not; algorithms are equally likely.
func (s *Space) draw(rng *rand.Rand) Point {
	p := make(Point, len(s.Knobs))
	for k := range s.Knobs {
		if s.Active(p, k) {
			p[k] = rng.IntN(len(s.Knobs[k].Values))
		}
	}
	return s.reconciled(p)
}

// switched is p with another algorithm, if there is one: between kinds of the same the knobs stay, else they are
// drawn.
func (s *Space) switched(rng *rand.Rand, p Point) Point {
	q, algorithms := append(Point{}, p...), len(s.Knobs[0].Values)
	if algorithms == 1 {
		return q
	}
	q[0] = (q[0] + 1 + rng.IntN(algorithms-1)) % algorithms
	for k := 1; k < len(q); k++ {
		if s.Active(q, k) && !s.Active(p, k) {
			q[k] = rng.IntN(len(s.Knobs[k].Values))
		}
	}
	return s.canonical(q)
}

// Next is the point that follows p when all are counted, the last knob fastest; ok is false after the last one. Points
// need not be legal.
func (s *Space) Next(p Point) (q Point, ok bool) {
	q = append(Point{}, p...)
	for k := len(q) - 1; k >= 0; k-- {
		if !s.Active(q, k) {
			continue
		}
		if q[k]++; q[k] < len(s.Knobs[k].Values) {
			return s.canonical(q), true
		}
		q[k] = 0
	}
	return nil, false
}
