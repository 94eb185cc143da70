package codegen

import (
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass/partition"
	"github.com/tilth-dev/tilth/compiler/pass/unroll"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// pass is a step from a program to another that computes the same.
type pass struct {
	name string
	run  func(*ir.Func) (*ir.Func, error)
}

// passes are what a kernel goes through between lowering and printing, in this order.
func (u *Unit) passes() []pass {
	list := []pass{
		{"partition", func(f *ir.Func) (*ir.Func, error) { return partition.Run(f), nil }},
		{"unroll", func(f *ir.Func) (*ir.Func, error) { return unroll.Run(f, u.lanes) }},
	}
	if u.vectorBytes == 0 { // the reference stays as plain as it can be
		return list[1:]
	}
	return list
}

// observe, if not nil, sees the program after each step.
var observe func(step string, f *ir.Func)

// lowered is a schedule as the program that is printed, after the passes. Each is told to see.
func lowered(s *schedule.Schedule, passes []pass, see func(step string, f *ir.Func)) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	step := "lower"
	for k := 0; err == nil; k++ {
		if see != nil {
			see(step, f)
		}
		if k == len(passes) {
			break
		}
		step = passes[k].name
		f, err = passes[k].run(f)
	}
	return f, err
}

// Dump is a kernel after each step, and its source, for whoever debugs it; without a target (nil), as plain scalar C.
func Dump(s *schedule.Schedule, t *target.Target) (steps []backend.Step, err error) {
	u := NewUnit(t)
	if _, err := lowered(s, u.passes(), func(step string, f *ir.Func) {
		steps = append(steps, backend.Step{Name: step, Text: f.Text()})
	}); err != nil {
		return nil, err
	}
	if _, err := u.AddWithPacks("kernel", schedule.Digest(s.Trace()), s); err != nil {
		return nil, err
	}
	return append(steps, backend.Step{Name: backend.Source, Text: u.Source()}), nil
}
