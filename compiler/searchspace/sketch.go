package searchspace

import "github.com/tilth-dev/tilth/compiler/schedule"

// Sketch is a family of schedules of one loop structure, with the fields of a P as open numbers, for one or more
// algorithms. It implements Family.
type Sketch[P any] struct {
	// Open lists the open numbers, and Fixed holds the others.
	Open  []Parameter[P]
	Fixed P
	// Variants lists the structures by algorithm, in ascending order of the algorithms' numbers.
	Variants []Variant[P]
	// Good lists the seeds.
	Good []Candidate[P]
	// Tiles converts a tiling to the family's knobs; nil if it has no such tiles.
	Tiles func(t Tiling) []Wish
}

// Parameter is a knob and the field with its value.
type Parameter[P any] struct {
	Knob
	Field func(*P) *int64
}

// Variant is a structure that uses an algorithm.
type Variant[P any] struct {
	By Algorithm
	Structure[P]
}

// Structure creates schedules from parameters.
type Structure[P any] interface {
	// Legal returns an error if parameters violate a constraint that is known before compilation.
	Legal(p P) error
	// Cost estimates the run time for legal parameters, in cycles of one core.
	Cost(p P) float64
	// Apply applies legal parameters to a schedule.
	Apply(s *schedule.Schedule, p P) error
}

// Reconciler is a structure with interdependent parameters.
type Reconciler[P any] interface {
	// Reconciled returns consistent parameters close to p.
	Reconciled(p P) P
}

// Candidate is an algorithm with parameters.
type Candidate[P any] struct {
	By         Algorithm
	Parameters P
}

// WithChoices returns the parameters with more than one choice.
func WithChoices[P any](parameters []Parameter[P]) (open []Parameter[P]) {
	for _, p := range parameters {
		if len(p.Values) > 1 {
			open = append(open, p)
		}
	}
	return open
}

// Algorithms implements Family.
func (k *Sketch[P]) Algorithms() (all []Algorithm) {
	for _, v := range k.Variants {
		all = append(all, v.By)
	}
	return all
}

// Knobs implements Family.
func (k *Sketch[P]) Knobs() (all []Knob) {
	for _, p := range k.Open {
		all = append(all, p.Knob)
	}
	return all
}

// Legal implements Family.
func (k *Sketch[P]) Legal(by Algorithm, values []int64) error {
	return k.structure(by).Legal(k.parameters(values))
}

// Cost implements Family.
func (k *Sketch[P]) Cost(by Algorithm, values []int64) float64 {
	return k.structure(by).Cost(k.parameters(values))
}

// Apply implements Family.
func (k *Sketch[P]) Apply(s *schedule.Schedule, by Algorithm, values []int64) error {
	return k.structure(by).Apply(s, k.parameters(values))
}

// Reconcile implements Family.
func (k *Sketch[P]) Reconcile(by Algorithm, values []int64) {
	if r, ok := k.structure(by).(Reconciler[P]); ok {
		copy(values, k.values(r.Reconciled(k.parameters(values))))
	}
}

// Seeds implements Family.
func (k *Sketch[P]) Seeds() (seeds []Seed) {
	for _, c := range k.Good {
		seeds = append(seeds, Seed{c.By, k.values(c.Parameters)})
	}
	return seeds
}

// Tiled implements Family.
func (k *Sketch[P]) Tiled(t Tiling) []Wish {
	if k.Tiles == nil {
		return nil
	}
	return k.Tiles(t)
}

func (k *Sketch[P]) structure(by Algorithm) Structure[P] {
	for _, v := range k.Variants {
		if v.By == by {
			return v.Structure
		}
	}
	panic("space: the family has no algorithm " + by.Name)
}

func (k *Sketch[P]) parameters(values []int64) P {
	p := k.Fixed
	for i, v := range values {
		*k.Open[i].Field(&p) = v
	}
	return p
}

func (k *Sketch[P]) values(p P) []int64 {
	values := make([]int64, len(k.Open))
	for i := range values {
		values[i] = *k.Open[i].Field(&p)
	}
	return values
}
