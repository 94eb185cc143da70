package gpusim

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"pgregory.net/rapid"
)

// errOther keeps a kernel from being run.
var errOther = errors.New("another kernel is run")

// orders reports whether a statement orders threads with their copies and products: a barrier, a fence, a wait, or
// what it waits for.
func orders(st ir.Stmt) bool {
	if c, ok := st.(*ir.Call); ok {
		return c.Orders
	}
	_, ok := st.(*ir.Barrier)
	return ok
}

// orderings counts such statements of a program.
func orderings(f *ir.Func) (n int) {
	ir.Visit(f.Body, func(st ir.Stmt) {
		if orders(st) {
			n++
		}
	})
	return n
}

// without returns a block without the barrier, fence or wait number *at, and decrements at.
func without(b ir.Block, at *int) ir.Block {
	var out ir.Block
	for _, st := range b {
		if orders(st) {
			if *at--; *at == -1 {
				continue
			}
		}
		switch n := st.(type) {
		case *ir.For:
			st = n.With(without(n.Body, at))
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: without(n.Then, at), Else: without(n.Else, at)}
		}
		out = append(out, st)
	}
	return out
}

// betweenRounds returns the numbers of barriers between two rounds of a copy to shared memory. For padded rows of
// rows, it may be impossible to prove that the rounds write different elements.
func betweenRounds(f *ir.Func) map[int]bool {
	numbers, at := map[int]bool{}, 0
	var walk func(b ir.Block)
	walk = func(b ir.Block) {
		for k, st := range b {
			if orders(st) {
				numbers[at] = k > 0 && k+1 < len(b) && fills(f, b[k-1]) && fills(f, b[k+1])
				at++
			}
			switch n := st.(type) {
			case *ir.For:
				walk(n.Body)
			case *ir.If:
				walk(n.Then)
				walk(n.Else)
			}
		}
	}
	walk(f.Body)
	return numbers
}

// fills reports whether a loop over threads only copies from arguments to shared memory.
func fills(f *ir.Func, st ir.Stmt) bool {
	n, ok := st.(*ir.For)
	if !ok || n.Kind != ir.Threads {
		return false
	}
	ir.Visit(n.Body, func(st ir.Stmt) {
		b := ir.Written(st)
		ok = ok && (b == nil || b.Space == ir.Shared)
	})
	ir.VisitExprs(n.Body, func(e expr.Expr) {
		for _, l := range expr.Loads(e) {
			ok = ok && slices.ContainsFunc(f.Args, func(b *ir.Buffer) bool { return b.Tensor == l.Tensor })
		}
	})
	return ok
}

// found matches reports that a barrier, a fence or a wait is missing.
var found = regexp.MustCompile("with no barrier between|nobody wrote|has not waited|have waited|has waited|it waited|no FENCE_ASYNC|no WGMMA_FENCE|" +
	"is no mbarrier|which is one|are missing")

// TestRemovedBarriersAreDetected checks that a kernel without any one of its barriers, fences and waits is detected.
func TestRemovedBarriersAreDetected(t *testing.T) {
	on := played(t)
	removed := 0
	families := kerneltest.Families(narrow(t))
	families["attention"] = kerneltest.DrawWholeAttention
	delete(families, "any") // whether threads share an element may depend on an index in the data
	kinds := slices.Sorted(maps.Keys(families))
	rapid.Check(t, func(rt *rapid.T) {
		draw := families[rapid.SampledFrom(kinds).Draw(rt, "kind")]
		c := drawn(rt, draw(rt).Merge(), on)
		if isPersistent(c.Schedule) {
			rt.Skip("whether one tile needs a barrier behind another depends on their slots")
		}
		n := missed(t, rt, on, c)
		if n == 0 {
			rt.Skip("no barrier and no wait")
		}
		removed += n
	})
	if removed == 0 {
		t.Error("no barrier, fence or wait was removed")
	}
}

// isPersistent reports whether a schedule has persistent blocks.
func isPersistent(s *schedule.Schedule) bool {
	walks := func(it *schedule.Iter) bool { return it.PersistentBlocks > 0 }
	return slices.ContainsFunc(s.Stages, func(g *schedule.Stage) bool { return slices.ContainsFunc(g.Leaves, walks) })
}

// missed runs a kernel without each of its barriers, fences and waits in turn, checks that each is detected, and
// returns their number.
func missed(t testing.TB, rt rapid.TB, on *target.Target, c kerneltest.Case) int {
	f, err := codegen.Lower(c.Schedule, on.GPU)
	if err != nil {
		rt.Fatalf("does not lower: %v\n%s", err, c.Text())
	}
	n := orderings(f)
	if n == 0 {
		return 0
	}
	u := newUnit(on)
	cases, symbols := make([]kerneltest.Case, n), make([]string, n)
	for k := range n {
		at := k
		mutant := unitOf(on, func(f *ir.Func) *ir.Func { return f.With(without(f.Body, &at)) })
		symbols[k], cases[k] = fmt.Sprintf("k%d", k), c
		if _, err := mutant.AddWithPacks(symbols[k], symbols[k], c.Schedule); err != nil {
			rt.Fatal(err)
		}
		u.Include(mutant)
	}
	program, err := toolchaintest.Program(t, "clang-19", append(on.ClangFlags(), "-std=gnu11", level(), "-w"), kerneltest.Source(u.Source(), symbols))
	if err != nil {
		rt.Fatalf("compiling: %v", err)
	}
	needless := betweenRounds(f)
	for k := range n {
		others := map[int]error{}
		for i := range n {
			if i != k {
				others[i] = errOther
			}
		}
		outputs, _, err := kerneltest.Run([]string{program}, cases, others)
		if err == nil && needless[k] && c.Wrong(outputs[k]) == "" {
			continue
		}
		if err == nil || !found.MatchString(err.Error()) {
			rt.Fatalf("without barrier, fence or wait %d of %d: %v\n%s\n%s", k, n, err, c.Text(), f.Text())
		}
	}
	return n
}
