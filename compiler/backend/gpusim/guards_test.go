package gpusim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gpucode "github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain/toolchaintest"
	"pgregory.net/rapid"
)

// guard changes the guard of a program that comes as number at: the condition of a statement that is not always run,
// or of a copy that is not always made. Versions of the same loops for whole and for partial tiles are none, nor is
// the end of what is fetched ahead: beyond it, a step fetches what nobody uses, and may do no harm.
type guard struct {
	at int
	// otherwise is done where the condition does not hold, and changes nothing else; nil to drop the condition.
	otherwise ir.Block
}

// changed is a block with the guard changed.
func (g *guard) changed(b ir.Block) ir.Block {
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
		case *ir.CopyAsync:
			c := *n
			out = append(append(out, g.copied(&c.Copy)...), &c)
		default:
			out = append(out, st)
		}
	}
	return out
}

// here reports whether the next guard is the one.
func (g *guard) here() bool {
	g.at--
	return g.at == -1
}

func (g *guard) branch(n *ir.If) ir.Block {
	switch {
	case len(n.Else) > 0 || fetches(n.Then) || !g.here():
		return ir.Block{&ir.If{Cond: n.Cond, Then: g.changed(n.Then), Else: g.changed(n.Else)}}
	case g.otherwise == nil:
		return n.Then
	}
	return ir.Block{&ir.If{Cond: n.Cond, Then: n.Then, Else: g.otherwise}}
}

// fetches reports whether a block only fetches ahead.
func fetches(b ir.Block) bool {
	only := true
	ir.Visit(b, func(st ir.Stmt) {
		switch st.(type) {
		case *ir.For, *ir.If, *ir.CopyAsync:
		default:
			only = false
		}
	})
	return only
}

// copied changes a copy, and is what is done before it.
func (g *guard) copied(c *ir.Copy) ir.Block {
	if c.Valid == nil || !g.here() {
		return nil
	}
	if g.otherwise != nil {
		return ir.Block{&ir.If{Cond: expr.Un(expr.Not, c.Valid), Then: g.otherwise}}
	}
	c.Valid = nil
	return nil
}

// guards counts those of a program.
func guards(f *ir.Func) int {
	g := &guard{}
	g.changed(f.Body)
	return -g.at
}

// outside writes behind the end of an output, which the simulated GPU reports.
func outside(f *ir.Func) ir.Block {
	out := f.Args[len(f.Args)-1]
	return ir.Block{&ir.Store{Buffer: out, Index: expr.I(out.Elements()), Value: expr.Zero(out.Tensor.DType)}}
}

// mutants are versions of a case's kernel in one program.
type mutants struct {
	program string
	cases   []kerneltest.Case
}

// change makes another kernel of one.
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
	flags := append(on.ClangFlags(), "-std=gnu11", "-O1", "-w")
	if m.program, err = toolchaintest.Program(t, "clang-19", flags, kerneltest.Source(u.Source(), symbols)); err != nil {
		rt.Fatalf("compiling: %v", err)
	}
	return m
}

// wrong says what is wrong with a mutant; empty if nothing is.
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

// withGuards draws a case whose kernel has guards; the kernel is nil where none of several had any. Tiles for tensor
// cores are none: they are whole, and what they fetch from beyond a row, often from the next one, nobody stores.
func withGuards(rt *rapid.T, on *target.Target) (c kerneltest.Case, f *ir.Func) {
	for range 10 {
		w := rapid.SampledFrom([]func(*rapid.T) *expr.Workload{
			kerneltest.DrawProduct, kerneltest.DrawConv, kerneltest.DrawWindows, kerneltest.DrawGroups,
		}).Draw(rt, "kind")(rt).Merge()
		s := Backend{}.Space(w, on, schedule.Strict).Of(space.Direct)
		point, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "point"), 0)))
		if !ok {
			continue
		}
		made, err := s.Apply(point)
		if err != nil {
			rt.Fatalf("point %s does not apply: %v\n%s", s.Format(point), err, w.Text())
		}
		c = kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
		if f, err = gpucode.Lower(made, on.GPU, nil); err != nil {
			rt.Fatalf("does not lower: %v\n%s", err, c.Text())
		}
		if guards(f) > 0 {
			return c, f
		}
	}
	return c, nil
}

// TestEveryGuardIsMissed: a kernel with one condition less is found out, whichever it is, by what it does or by what
// comes out, unless the condition always holds.
func TestEveryGuardIsMissed(t *testing.T) {
	on := played(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, f := withGuards(rt, on)
		if f == nil {
			return
		}
		changes := func(otherwise func(*ir.Func) ir.Block, at ...int) (list []change) {
			for _, k := range at {
				list = append(list, func(f *ir.Func) *ir.Func { return f.With((&guard{k, otherwise(f)}).changed(f.Body)) })
			}
			return list
		}
		all := make([]int, guards(f))
		for k := range all {
			all[k] = k
		}
		without := compiled(t, rt, on, c, changes(func(*ir.Func) ir.Block { return nil }, all...))
		for k := range all {
			if without.wrong(k) != "" {
				continue
			}
			// The simulation tells whether the condition is ever false.
			told := compiled(t, rt, on, c, changes(outside, k)).wrong(0)
			if strings.Contains(told, "which has") {
				rt.Fatalf("nothing is wrong without guard %d of %d\n%s\n%s", k, len(all), c.Text(), f.Text())
			}
		}
	})
}
