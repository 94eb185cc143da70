// This file adds user kernels to the spaces that a search draws candidates from.

package tuner

import (
	"context"
	"fmt"
	"sync"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// cautious is the assumed cost of an unmeasured kernel, relative to the default schedule. The kernel is tried early,
// while the search of schedules continues.
const cautious = 2

// KernelAdder adds the kernels of a job to the spaces of its tasks.
type KernelAdder struct {
	kernels  []*userkernel.Kernel
	levels   []schedule.Numerics
	numerics schedule.Numerics
	// looks is the remaining number of choices to check for legality, over all spaces.
	looks int
	// legal is own.Fit.Legal.
	legal func(f *userkernel.Fit, values []int64, threads int) error
}

// maxLooks is the number of choices that a job may check to find the first legal ones of kernels without a legal
// default. It limits the cost of unsatisfiable conditions to seconds, however many kernels and tasks there are.
const maxLooks = 1 << 16

// NewKernelAdder returns an adder of kernels for a numerics level.
func NewKernelAdder(kernels []*userkernel.Kernel, numerics schedule.Numerics) (*KernelAdder, error) {
	a := &KernelAdder{kernels: kernels, numerics: numerics, looks: maxLooks, legal: (*userkernel.Fit).Legal}
	numbers := map[int64]*userkernel.Kernel{}
	for _, k := range kernels {
		if other := numbers[k.Number()]; other != nil {
			return nil, fmt.Errorf("own kernels %s and %s: give one of them another name", other.Name, k.Name)
		}
		numbers[k.Number()] = k
		level, err := schedule.ParseNumerics(k.Numerics)
		if err != nil {
			return nil, fmt.Errorf("own kernel %s: %w", k.Name, err)
		}
		a.levels = append(a.levels, level)
	}
	return a, nil
}

// Add returns the space with all kernels that compute its workload on its target, respect the numerics level, and
// have a legal choice. The error is that of ctx.
func (a *KernelAdder) Add(ctx context.Context, s *searchspace.Space) (*searchspace.Space, error) {
	if len(a.kernels) == 0 {
		return s, ctx.Err()
	}
	cost := sync.OnceValue(func() float64 { return cautious * s.Cost(s.Default()) })
	text := s.Workload.Text()
	var families []searchspace.Family
	for i, k := range a.kernels {
		if a.levels[i] > a.numerics || k.Runs(s.Target) != nil {
			continue
		}
		fit, ok := k.Fit(text)
		if !ok {
			continue
		}
		f := &family{fit: fit, threads: s.Target.Threads(), cost: cost}
		if f.seed = a.first(ctx, f); f.seed != nil {
			families = append(families, f)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return s.With(families...), nil
}

// first returns the kernel's default if it is legal, else the first legal choice in lexicographic order, or nil.
func (a *KernelAdder) first(ctx context.Context, f *family) []int64 {
	k := f.fit.Kernel
	if k.Default != nil {
		values := make([]int64, len(k.Knobs))
		for i, knob := range k.Knobs {
			values[i] = k.Default[knob.Name]
		}
		if a.legal(f.fit, values, f.threads) == nil {
			return values
		}
	}
	for values := range choices(k.Knobs, maxChoices) {
		if ctx.Err() != nil || a.looks == 0 {
			return nil
		}
		a.looks--
		if a.legal(f.fit, values, f.threads) == nil {
			return values
		}
	}
	return nil
}

// maxChoices is the number of choices of one kernel to check for one workload.
const maxChoices = 1 << 14

// Unused explains, for each kernel that applies to none of the workloads on a target, why that is.
func (a *KernelAdder) Unused(ctx context.Context, t *target.Target, workloads []*expr.Workload) (reasons []error) {
	texts := make([]string, len(workloads))
	for i, w := range workloads {
		texts[i] = w.Text()
	}
	for i, k := range a.kernels {
		err := k.Runs(t)
		if err == nil && a.levels[i] > a.numerics {
			err = fmt.Errorf("own kernel %s needs numerics %s", k.Name, a.levels[i])
		}
		if err == nil {
			err = a.computes(ctx, k, t, texts)
		}
		if err != nil {
			reasons = append(reasons, err)
		}
	}
	return reasons
}

// computes returns an error that explains why a kernel has no legal choice for any of the workloads.
func (a *KernelAdder) computes(ctx context.Context, k *userkernel.Kernel, t *target.Target, texts []string) error {
	matched := false
	for _, text := range texts {
		if fit, ok := k.Fit(text); ok {
			matched = true
			if a.first(ctx, &family{fit: fit, threads: t.Threads()}) != nil {
				return nil
			}
		}
	}
	if !matched {
		return fmt.Errorf("own kernel %s computes none of the tasks: 'tilth kernels tasks' prints what they compute", k.Name)
	}
	return fmt.Errorf("own kernel %s has no legal choice for the tasks that it computes", k.Name)
}

// family is a kernel for a workload. It implements searchspace.Family.
type family struct {
	fit     *userkernel.Fit
	threads int
	cost    func() float64
	// seed is the first candidate to measure.
	seed []int64
}

// choices iterates over values of all knobs, at most a number of them.
func choices(knobs []userkernel.Knob, limit int) func(yield func([]int64) bool) {
	return func(yield func([]int64) bool) {
		at := make([]int, len(knobs))
		for range limit {
			values := make([]int64, len(at))
			for i, k := range at {
				values[i] = knobs[i].Values[k]
			}
			if !yield(values) || !next(at, knobs) {
				return
			}
		}
	}
}

// next advances to the next choice. It returns false after the last one.
func next(at []int, knobs []userkernel.Knob) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(knobs[i].Values) {
			return true
		}
		at[i] = 0
	}
	return false
}

func (f *family) algorithm() searchspace.Algorithm {
	return searchspace.Algorithm{Name: "own kernel " + f.fit.Kernel.Name, Number: f.fit.Kernel.Number()}
}

// Algorithms implements searchspace.Family.
func (f *family) Algorithms() []searchspace.Algorithm { return []searchspace.Algorithm{f.algorithm()} }

// Knobs implements searchspace.Family.
func (f *family) Knobs() (list []searchspace.Knob) {
	for _, k := range f.fit.Kernel.Knobs {
		list = append(list, searchspace.Knob{Name: k.Name, Values: k.Values})
	}
	return list
}

// Legal implements searchspace.Family.
func (f *family) Legal(_ searchspace.Algorithm, values []int64) error {
	return f.fit.Legal(values, f.threads)
}

// Cost implements searchspace.Family. The cost of a kernel is unknown before it is measured.
func (f *family) Cost(searchspace.Algorithm, []int64) float64 { return f.cost() }

// Apply implements searchspace.Family.
func (f *family) Apply(s *schedule.Schedule, _ searchspace.Algorithm, values []int64) error {
	c, err := f.fit.At(values)
	if err != nil {
		return err
	}
	return s.UseOwn(c)
}

// Reconcile implements searchspace.Family. Only the kernel's condition determines legality.
func (f *family) Reconcile(searchspace.Algorithm, []int64) {}

// Seeds implements searchspace.Family.
func (f *family) Seeds() []searchspace.Seed {
	return []searchspace.Seed{{By: f.algorithm(), Values: f.seed}}
}

// Tiled implements searchspace.Family. The meaning of a kernel's knobs is unknown.
func (f *family) Tiled(searchspace.Tiling) []searchspace.Wish { return nil }

// CountKernelPoints counts the legal choices of a kernel for the workload of a space. It checks at most a number of
// choices. all is true if these were all of them.
func CountKernelPoints(s *searchspace.Space, k *userkernel.Kernel, limit int) (legal, looked int, all bool) {
	fit, ok := k.Fit(s.Workload.Text())
	if !ok {
		return 0, 0, true
	}
	size := 1
	for _, knob := range k.Knobs {
		size = min(size*len(knob.Values), limit+1)
	}
	for values := range choices(k.Knobs, limit) {
		looked++
		if fit.Legal(values, s.Target.Threads()) == nil {
			legal++
		}
	}
	return legal, looked, size <= limit
}
