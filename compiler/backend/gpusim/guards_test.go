package gpusim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gpucode "github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"pgregory.net/rapid"
)

// guards changes some guards of a program: conditions of statements or copies that do not always execute. Versions of
// the same loops for whole and partial tiles do not count, nor does the end of prefetching: beyond it, a step
// harmlessly fetches unused data.
type guards struct {
	// these holds the numbers of the guards to change, in program order.
	these []int
	// otherwise executes if the condition is false, and changes nothing else; nil drops the condition.
	otherwise ir.Block
	// list holds all guards.
	list []guarded
}

// guarded describes a guard.
type guarded struct {
	// from is the array that a guarded copy reads; nil otherwise.
	from *expr.Tensor
	// own is set if all stores that it guards are to memory of the block.
	own bool
}

// changed returns the block with the guards changed.
func (g *guards) changed(b ir.Block) ir.Block {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			out = append(out, n.With(g.changed(n.Body)))
		case *ir.If:
			out = append(out, g.branch(n)...)
		case *ir.Copy:
			c := *n
			out = append(append(out, g.copied(&c)...), &c)
		default:
			out = append(out, st)
		}
	}
	return out
}

// here reports whether the next guard is to be changed.
func (g *guards) here(next guarded) bool {
	g.list = append(g.list, next)
	return slices.Contains(g.these, len(g.list)-1)
}

func (g *guards) branch(n *ir.If) ir.Block {
	switch {
	case len(n.Else) > 0 || fetches(n.Then) || !g.here(guarded{own: own(n.Then)}):
		return ir.Block{&ir.If{Cond: n.Cond, Then: g.changed(n.Then), Else: g.changed(n.Else)}}
	case g.otherwise == nil:
		return g.changed(n.Then)
	}
	return ir.Block{&ir.If{Cond: n.Cond, Then: g.changed(n.Then), Else: g.otherwise}}
}

// fetches reports whether a block only prefetches.
func fetches(b ir.Block) bool {
	only := true
	ir.Visit(b, func(st ir.Stmt) {
		switch n := st.(type) {
		case *ir.For, *ir.If:
		case *ir.Copy:
			only = only && n.Starts != nil
		default:
			only = false
		}
	})
	return only
}

// copied changes a copy and returns what executes before it.
func (g *guards) copied(c *ir.Copy) ir.Block {
	if c.Valid == nil || !g.here(guarded{from: c.From.Tensor}) {
		return nil
	}
	if g.otherwise != nil {
		return ir.Block{&ir.If{Cond: expr.Un(expr.Not, c.Valid), Then: g.otherwise}}
	}
	c.Valid = nil
	return nil
}

// own reports whether a block stores only to shared memory and registers.
func own(b ir.Block) bool {
	only := true
	ir.Visit(b, func(st ir.Stmt) {
		if n, ok := st.(*ir.Store); ok {
			only = only && (n.Buffer.Space == ir.Shared || n.Buffer.Space == ir.Private)
		}
	})
	return only
}

// apart returns the sets of guards of a program that must each be detected. Tiles for tensor cores often copy the
// next row beyond the end of a row, and the result is unused: copies of an array are not guarded there, and guards of
// the block's memory may be omitted.
func apart(f *ir.Func, tiles bool) (sets [][]int) {
	g := &guards{}
	g.changed(f.Body)
	of := map[*expr.Tensor]int{}
	for k, next := range g.list {
		at, more := of[next.from]
		switch {
		case !tiles:
		case next.own:
			continue
		case more:
			sets[at] = append(sets[at], k)
			continue
		case next.from != nil:
			of[next.from] = len(sets)
		}
		sets = append(sets, []int{k})
	}
	return sets
}

// outside writes beyond the end of an output, which the simulated GPU reports.
func outside(f *ir.Func) ir.Block {
	out := f.Args[len(f.Args)-1]
	return ir.Block{&ir.Store{Buffer: out, Index: expr.I(out.Elements()), Value: expr.Zero(out.Tensor.DType)}}
}

// mutants holds versions of a case's kernel in one program.
type mutants struct {
	program string
	cases   []kerneltest.Case
}

// change transforms a kernel.
type change = func(*ir.Func) *ir.Func

func compiled(t *testing.T, rt *rapid.T, on *target.Target, c kerneltest.Case, changes []change) *mutants {
	u := newUnit(on)
	m := &mutants{cases: make([]kerneltest.Case, len(changes))}
	symbols := make([]string, len(changes))
	for k, change := range changes {
		one := unitOf(on, change)
		symbols[k], m.cases[k] = fmt.Sprintf("k%d", k), c
		if _, err := one.AddWithPacks(symbols[k], symbols[k], c.Schedule); err != nil {
			rt.Fatal(err)
		}
		u.Include(one)
	}
	var err error
	flags := append(on.ClangFlags(), "-std=gnu11", level(), "-w")
	if m.program, err = toolchaintest.Program(t, "clang-19", flags, kerneltest.Source(u.Source(), symbols)); err != nil {
		rt.Fatalf("compiling: %v", err)
	}
	return m
}

// wrong describes a mutant's fault, or returns "".
func (m *mutants) wrong(k int) string {
	others := map[int]error{}
	for i := range m.cases {
		if i != k {
			others[i] = errOther
		}
	}
	outputs, _, err := kerneltest.Run([]string{m.program}, m.cases, others)
	if err != nil {
		return err.Error()
	}
	return m.cases[k].Wrong(outputs[k])
}

// withGuards draws a case whose kernel has guards, and the sets of them that must be detected. It returns no sets if
// several kernels had no guards.
func withGuards(rt *rapid.T, on *target.Target) (c kerneltest.Case, f *ir.Func, sets [][]int) {
	kinds := map[string]func(*rapid.T) *expr.Workload{
		"product": kerneltest.DrawProduct, "convolution": kerneltest.DrawConv, "windows": kerneltest.DrawWindows, "groups": kerneltest.DrawGroups,
		"matrices": kerneltest.DrawMatrices, "warpgroups": kerneltest.DrawWarpgroups, "attention": kerneltest.DrawAttention,
	}
	names := slices.Sorted(maps.Keys(kinds))
	for range 10 {
		kind := rapid.SampledFrom(names).Draw(rt, "kind")
		w := kinds[kind](rt).Merge()
		s := Backend{}.Space(w, on, schedule.Fast)
		by := rapid.SampledFrom(s.Algorithms()).Draw(rt, "algorithm")
		s = s.Of(by)
		point, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "point"), 0)))
		if !ok {
			continue
		}
		made, err := s.Apply(point)
		if err != nil {
			rt.Fatalf("point %s does not apply: %v\n%s", s.Format(point), err, w.Text())
		}
		c = kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
		if f, err = gpucode.Lower(made, on.GPU); err != nil {
			rt.Fatalf("does not lower: %v\n%s", err, c.Text())
		}
		if sets = apart(f, by != searchspace.Direct || kind == "attention"); len(sets) > 0 {
			break
		}
	}
	return c, f, sets
}

// TestRemovedGuardsAreDetected checks that a kernel without any one of its conditions is detected by its effects or
// its output, unless the condition always holds.
func TestRemovedGuardsAreDetected(t *testing.T) {
	on := played(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, f, sets := withGuards(rt, on)
		if len(sets) == 0 {
			return
		}
		changes := func(otherwise func(*ir.Func) ir.Block, sets ...[]int) (list []change) {
			for _, these := range sets {
				list = append(list, func(f *ir.Func) *ir.Func {
					g := guards{these: these, otherwise: otherwise(f)}
					return f.With(g.changed(f.Body))
				})
			}
			return list
		}
		without := compiled(t, rt, on, c, changes(func(*ir.Func) ir.Block { return nil }, sets...))
		for k, these := range sets {
			if without.wrong(k) != "" {
				continue
			}
			// The simulator reports whether the condition is ever false.
			told := compiled(t, rt, on, c, changes(outside, these)).wrong(0)
			if strings.Contains(told, "which has") {
				rt.Fatalf("nothing is wrong without guards %v of %v\n%s\n%s", these, sets, c.Text(), f.Text())
			}
		}
	})
}
