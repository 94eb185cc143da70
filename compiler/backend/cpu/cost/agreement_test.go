package cost_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// agreements holds bounds just outside the observed values. Wide bounds have five reasons:
//
//   - Knobs account for the compilation of tiles that continue in the next row: spilled addresses, and padding that is
//     checked position by position. A schedule does not show that.
//   - Sums across lanes cost less by knobs than by a schedule, because laying keys out, which they avoid, takes longer
//     than either estimates: its loads are of single elements. By the schedule's cost, a decoder of three query heads
//     per key head would lay them out, and take 1.05 times as long for a token behind 511.
//   - An index read from memory may have any value, so gathers appear to read the whole table; they are excluded here.
//   - Knobs account for requests of lines that hardware prefetches already, in products of few rows.
//   - For maps, the knobs omit memory, which is nearly the same for all points, and the cost of a parallel region,
//     which is not: with it, small maps would have one chunk, and twelve of 529 tasks other default schedules on
//     several workers. Models gained nothing from those. In turns on two threads of an EPYC, an LSTM's package was
//     0.99 and 1.00 times as fast, that of bert-tiny 1.00 and 1.01 times: when kernels follow one another
//     immediately, workers are still awake, and a region costs less than on its own.
var agreements = map[string]kerneltest.Agreement{
	"tiles":                       {Low: 0.42, High: 1.55, Alike: 0.9},
	"tiles that are fed":          {Low: 0.45, High: 1.65, Alike: 0.83},
	"tiles of joint positions":    {Low: 0.5, High: 2.5, Alike: 0.82},
	"tiles across rows":           {Low: 0.35, High: 4.4, Alike: 0.64},
	"rows":                        {Low: 0.55, High: 1.6, Alike: 0.99},
	"attention":                   {Low: 0.9, High: 1.5, Alike: 0.97},
	"attention along keys":        {Low: 1.5, High: 4.4, Alike: 0.97},
	"maps":                        {Low: 1.1, High: 3.7, Alike: 0.55},
	"maps of several workers":     {Low: 1.7, High: 240, Alike: 0.35},
	"winograd, whole":             {Low: 0.45, High: 1.15, Alike: 0.98},
	"winograd, in blocks":         {Low: 0.45, High: 1.8, Alike: 0.86},
	"AMX BF16":                    {Low: 0.5, High: 1.5, Alike: 0.9},
	"strassen":                    {Low: 0.45, High: 1.2, Alike: 0.94},
	"strassen with computed sums": {Low: 0.45, High: 1.3, Alike: 0.95},
}

// TestKnobsAndScheduleCostAlike compares random points of the tasks of some models, on targets with one worker and
// several.
func TestKnobsAndScheduleCostAlike(t *testing.T) {
	seen := map[string][][]kerneltest.Prices{}
	for _, name := range []string{"resnet-18", "mobilenet-v2", "bert-small", "squeezenet-v1.1", "efficientnet-b0", "gpt-small", "resnet3d-18"} {
		for n, w := range builtin(t, name) {
			if indirect(w) {
				continue
			}
			for k, on := range []*target.Target{parseTarget(t, "x86-64-v3", 1), parseTarget(t, "x86-64-v4", 2), parseTarget(t, "arm64", 4)} {
				for kind, list := range samples(t, sketch.New(w, on, schedule.Default), rand.New(rand.NewPCG(uint64(n), uint64(k)))) {
					seen[kind] = append(seen[kind], list)
				}
			}
		}
	}
	for _, name := range []string{"resnet-18", "bert-small"} {
		for n, w := range stored(t, name, array.Storage{Type: array.BFloat16}) {
			on := parseTarget(t, "sapphire-rapids", 1+n%3)
			for kind, list := range samples(t, sketch.New(w, on, schedule.Default), rand.New(rand.NewPCG(uint64(n), 3))) {
				if strings.HasPrefix(kind, "AMX") {
					seen[kind] = append(seen[kind], list)
				}
			}
		}
	}
	kerneltest.CheckAgreement(t, agreements, seen)
}

// samples returns random points of a space by kind.
func samples(t *testing.T, s *searchspace.Space, rng *rand.Rand) map[string][]kerneltest.Prices {
	t.Helper()
	list := map[string][]kerneltest.Prices{}
	for range 16 {
		p, ok := s.Random(rng)
		if !ok || len(p) == 0 {
			continue
		}
		applied, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		kind := kindOf(s, p)
		list[kind] = append(list[kind], kerneltest.Prices{Knobs: s.Cost(p), Analysis: analyse(applied, s.Target).Cycles()})
	}
	return list
}

// kindOf names a point by its algorithm and its knobs.
func kindOf(s *searchspace.Space, p searchspace.Point) string {
	values := map[string]int64{}
	for k, knob := range s.Knobs {
		values[knob.Name] = knob.Values[p[k]]
	}
	has := func(knob string) bool {
		_, ok := values[knob]
		return ok
	}
	shape := s.Workload.Outputs[0].Shape
	switch by := s.Algorithm(p); {
	case by != searchspace.Direct && has("wb") && values["wb"] == 0:
		return "winograd, whole"
	case by != searchspace.Direct && has("wb"):
		return "winograd, in blocks"
	case by != searchspace.Direct:
		return by.Name
	case values["keys"] == 3:
		return "attention along keys"
	case has("keys"):
		return "attention"
	case has("acc"):
		return "rows"
	case has("span") && s.Target.CPU.Threads > 1:
		return "maps of several workers"
	case has("span"):
		return "maps"
	case values["joint"] == 1:
		if row, tile := shape[len(shape)-2], values["tw"]; row%tile != 0 && tile%row != 0 {
			return "tiles across rows"
		}
		return "tiles of joint positions"
	case has("feed"):
		return "tiles that are fed"
	}
	return "tiles"
}

// indirect reports whether a workload reads an index from memory.
func indirect(w *expr.Workload) (found bool) {
	within := func(index expr.Expr) {
		expr.Walk(index, func(e expr.Expr) {
			_, read := e.(*expr.Load)
			found = found || read
		})
	}
	for _, g := range schedule.New(w).Stages {
		expr.Walk(g.Body, func(e expr.Expr) {
			if l, ok := e.(*expr.Load); ok {
				for _, index := range l.Index {
					within(index)
				}
			}
		})
	}
	return found
}

// BenchmarkCost evaluates random points by their knobs and by their schedules.
func BenchmarkCost(b *testing.B) {
	on := parseTarget(b, "x86-64-v3", 2)
	for _, c := range []struct {
		name string
		w    *expr.Workload
	}{
		{"product", kerneltest.Product(b, 128, 512, 512)},
		{"convolution", builtin(b, "resnet-18")[2]},
	} {
		s, rng := sketch.New(c.w, on, schedule.Default), rand.New(rand.NewPCG(1, 1))
		var points []searchspace.Point
		for range 64 {
			if p, ok := s.Random(rng); ok {
				points = append(points, p)
			}
		}
		price := func(by string, of func(p searchspace.Point)) {
			b.Run(c.name+" by "+by, func(b *testing.B) {
				for k := 0; b.Loop(); k++ {
					of(points[k%len(points)])
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
			})
		}
		price("knobs", func(p searchspace.Point) { s.Cost(p) })
		analysis := new(cost.Analysis)
		price("schedule", func(p searchspace.Point) {
			applied, err := s.Apply(p)
			if err != nil {
				b.Fatal(err)
			}
			analysis.Run(applied, on)
			analysis.Cycles()
		})
	}
}
