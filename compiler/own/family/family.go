package family

import (
	"fmt"
	"sync"

	"github.com/tilth-dev/tilth/compiler/own"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
)

// cautious is how many times the cost of the default schedule a kernel is thought to cost that was not measured: it is
// tried early, and the search of schedules goes on beside it.
const cautious = 2

// Add is a space with the kernels that compute its workload on its target by at most some level of numerics.
func Add(s *space.Space, kernels []*own.Kernel, numerics schedule.Numerics) (*space.Space, error) {
	cost := sync.OnceValue(func() float64 { return cautious * s.Cost(s.Default()) })
	var families []space.Family
	numbers := map[int64]*own.Kernel{}
	for _, k := range kernels {
		if other := numbers[k.Number()]; other != nil {
			return nil, fmt.Errorf("own kernels %s and %s: give one of them another name", other.Name, k.Name)
		}
		numbers[k.Number()] = k
		level, err := schedule.ParseNumerics(k.Numerics)
		if err != nil {
			return nil, fmt.Errorf("own kernel %s: %w", k.Name, err)
		}
		if _, ok := k.Match(s.Workload); !ok || level > numerics || k.Runs(s.Target) != nil {
			continue
		}
		f := &family{kernel: k, space: s, cost: cost}
		if f.seed = f.first(); f.seed != nil {
			families = append(families, f)
		}
	}
	return s.With(families...), nil
}

// family is a kernel for a workload. It implements space.Family.
type family struct {
	kernel *own.Kernel
	space  *space.Space
	cost   func() float64
	// seed is the first candidate to measure; nil where none is legal.
	seed []int64
}

// maxLooks is how many choices are looked at for a legal one, where the kernel has no default that is.
const maxLooks = 1 << 14

// first is the kernel's default where it is legal, else the first legal choice, counting with the last knob fastest;
// nil when there is none.
func (f *family) first() []int64 {
	if f.kernel.Default != nil {
		values := make([]int64, len(f.kernel.Knobs))
		for i, knob := range f.kernel.Knobs {
			values[i] = f.kernel.Default[knob.Name]
		}
		if f.legal(values) == nil {
			return values
		}
	}
	for values := range f.choices(maxLooks) {
		if f.legal(values) == nil {
			return values
		}
	}
	return nil
}

// choices are values for all knobs, at most so many.
func (f *family) choices(most int) func(yield func([]int64) bool) {
	return func(yield func([]int64) bool) {
		at := make([]int, len(f.kernel.Knobs))
		for range most {
			values := make([]int64, len(at))
			for i, k := range at {
				values[i] = f.kernel.Knobs[i].Values[k]
			}
			if !yield(values) || !next(at, f.kernel.Knobs) {
				return
			}
		}
	}
}

// next counts up; false after the last choice.
func next(at []int, knobs []own.Knob) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(knobs[i].Values) {
			return true
		}
		at[i] = 0
	}
	return false
}

func (f *family) legal(values []int64) error {
	c, err := f.kernel.At(f.space.Workload, values)
	if err != nil {
		return err
	}
	if err := c.Legal(f.space.Target.Threads()); err != nil {
		return err
	}
	_, err = c.WorkspaceBytes(f.space.Target.Threads())
	return err
}

func (f *family) algorithm() space.Algorithm {
	return space.Algorithm{Name: "own kernel " + f.kernel.Name, Number: f.kernel.Number()}
}

// Algorithms implements space.Family.
func (f *family) Algorithms() []space.Algorithm { return []space.Algorithm{f.algorithm()} }

// Knobs implements space.Family.
func (f *family) Knobs() (list []space.Knob) {
	for _, k := range f.kernel.Knobs {
		list = append(list, space.Knob{Name: k.Name, Values: k.Values})
	}
	return list
}

// Legal implements space.Family.
func (f *family) Legal(_ space.Algorithm, values []int64) error { return f.legal(values) }

// Cost implements space.Family. Nothing is known of the kernel before it is measured.
func (f *family) Cost(space.Algorithm, []int64) float64 { return f.cost() }

// Apply implements space.Family.
func (f *family) Apply(s *schedule.Schedule, _ space.Algorithm, values []int64) error {
	c, err := f.kernel.At(s.Workload, values)
	if err != nil {
		return err
	}
	return s.UseOwn(c)
}

// Reconcile implements space.Family: the kernel's condition alone says what is legal.
func (f *family) Reconcile(space.Algorithm, []int64) {}

// Seeds implements space.Family.
func (f *family) Seeds() []space.Seed { return []space.Seed{{By: f.algorithm(), Values: f.seed}} }

// Count is how many choices of a kernel's values are legal for the workload of a space, of at most so many that are
// looked at; all tells that these were all of them.
func Count(s *space.Space, k *own.Kernel, most int) (legal, looked int, all bool) {
	f := &family{kernel: k, space: s}
	size := 1
	for _, knob := range k.Knobs {
		size = min(size*len(knob.Values), most+1)
	}
	for values := range f.choices(most) {
		looked++
		if f.legal(values) == nil {
			legal++
		}
	}
	return legal, looked, size <= most
}
