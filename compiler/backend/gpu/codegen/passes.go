package codegen

import (
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass/barrier"
	"github.com/tilth-dev/tilth/compiler/pass/guard"
	"github.com/tilth-dev/tilth/compiler/pass/pipeline"
	"github.com/tilth-dev/tilth/compiler/pass/preload"
	"github.com/tilth-dev/tilth/compiler/pass/products"
	"github.com/tilth-dev/tilth/compiler/pass/shuffle"
	"github.com/tilth-dev/tilth/compiler/pass/sink"
	"github.com/tilth-dev/tilth/compiler/pass/spread"
	"github.com/tilth-dev/tilth/compiler/pass/storage"
	"github.com/tilth-dev/tilth/compiler/pass/tensorize"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
	"github.com/tilth-dev/tilth/compiler/pass/wide"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// pass is a step from a program to another that computes the same.
type pass struct {
	name string
	run  func(*ir.Func) (*ir.Func, error)
}

// passes are what a kernel goes through between lowering and printing, in this order.
func passes(g *target.GPU) []pass {
	combine := shuffle.Run
	if !g.HasWarps() {
		combine = shuffle.Plain
	}
	return []pass{
		{"threads", threads.Run},
		{"shuffle", func(f *ir.Func) (*ir.Func, error) { return combine(f), nil }},
		{"wide", func(f *ir.Func) (*ir.Func, error) { return wide.Run(f), nil }},
		{"pipeline", func(f *ir.Func) (*ir.Func, error) { return pipeline.Run(f), nil }},
		{"begin", func(f *ir.Func) (*ir.Func, error) { return pipeline.Begin(f), nil }},
		{"spread", spread.Run},
		{"tensorize", func(f *ir.Func) (*ir.Func, error) { return tensorize.Run(f), nil }},
		{"storage", func(f *ir.Func) (*ir.Func, error) { return storage.Run(f, workspace), nil }},
		{"products", func(f *ir.Func) (*ir.Func, error) { return products.Run(f), nil }},
		{"sink", func(f *ir.Func) (*ir.Func, error) { return sink.Run(f), nil }},
		{"guard", func(f *ir.Func) (*ir.Func, error) { return guard.Run(f), nil }},
		{"preload", func(f *ir.Func) (*ir.Func, error) { return preload.Run(f), nil }},
		{"barrier", func(f *ir.Func) (*ir.Func, error) { return barrier.Run(f), nil }},
		{"limits", func(f *ir.Func) (*ir.Func, error) { return f, checkLimits(f, g) }},
	}
}

// workspace is where buffers lie that outlive a launch.
var workspace = storage.Limits{AlignBytes: 64}

// Lower is the program that a schedule is printed as: launches on a GPU. Each step is told to see, which may be nil.
// The error says why there is none, or which limit of the GPU it breaks.
func Lower(s *schedule.Schedule, g *target.GPU, see func(step string, f *ir.Func)) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	step := "lower"
	for k, p := 0, passes(g); err == nil; k++ {
		if see != nil {
			see(step, f)
		}
		if k == len(p) {
			break
		}
		step = p[k].name
		f, err = p[k].run(f)
	}
	return f, err
}

// Outline is the program of a schedule with its launches and wide copies, before anything is proved, placed or
// ordered: what estimates are made of.
func Outline(s *schedule.Schedule) (*ir.Func, error) {
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	if f, err = threads.Run(f); err != nil {
		return nil, err
	}
	return wide.Run(f), nil
}
