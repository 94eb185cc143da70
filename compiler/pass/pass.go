package pass

import (
	"fmt"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Config describes a backend and its target to the passes.
type Config struct {
	// VectorBytes is the size of a vector; 0 for scalar code. Registers is the number of vector registers.
	VectorBytes, Registers int64
	Forms                  LaneForms
	// LookUp is the minimum number of operations of a byte function that is replaced by a lookup. 0 disables lookups
	// on targets without an instruction: splitting vectors costs more than an exponential.
	LookUp int
	// HasTiles reports whether the target multiplies tiles of a type.
	HasTiles func(array.DType) bool
	// HasWarps is set if threads exchange registers.
	HasWarps bool
	Caches   Caches
	Room     StorageLimits
	// CheckLimits returns an error that names the limit of the target that a program exceeds.
	CheckLimits func(*ir.Func) error
}

// Lanes returns the number of elements of a vector, at least 1.
func (c *Config) Lanes(d array.DType) int64 { return max(1, c.VectorBytes/d.Bytes()) }

// rules maps passes to the reasons to run after them.
type rules map[string]string

// entry describes a pass.
type entry struct {
	name string
	// after lists the passes that must run earlier where both run.
	after rules
	// essential is the reason that programs need the pass; it is empty for an optimization.
	essential string
	run       func(*ir.Func, *Config) (*ir.Func, error)
}

// Order is a list of passes in an order that the table allows.
type Order []entry

// Ordered returns the passes with the given names. It panics if their order breaks a rule of the table: backends call
// it when the program starts.
func Ordered(names ...string) (o Order) {
	for _, name := range names {
		k := slices.IndexFunc(table, named(name))
		if k < 0 {
			panic("pass: there is no pass " + name)
		}
		for _, earlier := range o {
			if why, wrong := earlier.after[name]; wrong {
				panic(fmt.Sprintf("pass: %s must run after %s: %s", earlier.name, name, why))
			}
		}
		o = append(o, table[k])
	}
	return o
}

func named(name string) func(entry) bool { return func(e entry) bool { return e.name == name } }

// Without returns the order without some passes. The error names a pass that cannot be left out, and the reason.
func (o Order) Without(names []string) (Order, error) {
	rest := slices.Clone(o)
	for _, name := range names {
		k := slices.IndexFunc(o, named(name))
		if k < 0 {
			return nil, fmt.Errorf("no pass %q runs for this target: a dump names those that do", name)
		}
		if why := o[k].essential; why != "" {
			return nil, fmt.Errorf("pass %s cannot be left out: %s", name, why)
		}
		rest = slices.DeleteFunc(rest, named(name))
	}
	return rest, nil
}

// Verify has Lower verify the program after each pass. Tests set it.
var Verify bool

// Lower lowers a schedule and runs the passes in order. If see is not nil, Lower calls it with the program and the
// time taken, first under the name "lower" and then after each pass, and verifies the program.
func (o Order) Lower(s *schedule.Schedule, c *Config, see func(step string, f *ir.Func, took time.Duration)) (f *ir.Func, err error) {
	lowering := entry{name: "lower", run: func(*ir.Func, *Config) (*ir.Func, error) { return lower.Schedule(s) }}
	for _, e := range append(Order{lowering}, o...) {
		begin := time.Now()
		if f, err = e.run(f, c); err != nil {
			return nil, err
		}
		if see != nil {
			see(e.name, f, time.Since(begin))
		}
		if see != nil || Verify {
			if err := f.Verify(); err != nil {
				return nil, fmt.Errorf("after pass %s: %w", e.name, err)
			}
		}
	}
	return f, nil
}
