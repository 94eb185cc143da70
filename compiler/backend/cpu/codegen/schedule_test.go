package codegen

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// drawSchedule applies drawn primitives. Illegal ones leave the schedule unchanged.
func drawSchedule(t *rapid.T, w *expr.Workload) *schedule.Schedule {
	s := schedule.New(w)
	p := &primitives{t: t, s: s}
	p.packs()
	for rapid.Bool().Draw(t, "rfactor") {
		p.rfactor()
	}
	all := []func(){p.rfactor, p.unitLoop, p.split, p.split, p.fuse, p.reorder, p.computeAt, p.computeAt, p.inline, p.cacheWrite, p.cacheRead, p.flatten, p.parallel, p.vectorize, p.unroll, p.widen, p.extend, p.adjoin, p.interleave, p.round, p.dot}
	for range rapid.IntRange(0, 16).Draw(t, "steps") {
		rapid.SampledFrom(all).Draw(t, "primitive")()
	}
	if rapid.Bool().Draw(t, "vectorize the innermost") {
		for _, g := range s.Stages {
			if len(g.Leaves) > 0 && !g.Inlined && rapid.Bool().Draw(t, "this") {
				_ = s.Vectorize(g.ID, g.Leaves[len(g.Leaves)-1].ID)
			}
		}
	}
	for _, g := range s.Stages {
		if g.IsOutput && rapid.Bool().Draw(t, "stream") {
			_ = s.Stream(g.ID)
		}
	}
	return s
}

type primitives struct {
	t *rapid.T
	s *schedule.Schedule
}

func (p *primitives) stage() *schedule.Stage {
	return p.s.Stages[rapid.IntRange(0, len(p.s.Stages)-1).Draw(p.t, "stage")]
}

func (p *primitives) leaf(g *schedule.Stage) int {
	if len(g.Leaves) == 0 {
		return 0
	}
	return g.Leaves[rapid.IntRange(0, len(g.Leaves)-1).Draw(p.t, "leaf")].ID
}

func (p *primitives) split() {
	g := p.stage()
	tail := rapid.SampledFrom([]schedule.Tail{schedule.Peel, schedule.Shift, schedule.Fit}).Draw(p.t, "tail")
	_, _, _ = p.s.Split(g.ID, p.leaf(g), rapid.SampledFrom([]int64{1, 2, 3, 4, 5, 7, 8, 16, 32}).Draw(p.t, "factor"), tail)
}

func (p *primitives) unitLoop() {
	_, _ = p.s.UnitLoop(p.stage().ID)
}

func (p *primitives) fuse() {
	g := p.stage()
	if len(g.Leaves) > 1 {
		k := rapid.IntRange(0, len(g.Leaves)-2).Draw(p.t, "at")
		_, _ = p.s.Fuse(g.ID, g.Leaves[k].ID, g.Leaves[k+1].ID)
	}
}

func (p *primitives) flatten() {
	g := p.stage()
	if len(g.Axes) > 1 {
		first := rapid.IntRange(0, len(g.Axes)-2).Draw(p.t, "first")
		_ = p.s.Flatten(g.ID, first, rapid.IntRange(first+1, len(g.Axes)-1).Draw(p.t, "last"))
	}
}

func (p *primitives) reorder() {
	g := p.stage()
	var ids []int
	for _, it := range g.Leaves {
		ids = append(ids, it.ID)
	}
	if len(ids) > 0 {
		_ = p.s.Reorder(g.ID, rapid.Permutation(ids).Draw(p.t, "order")...)
	}
}

func (p *primitives) computeAt() {
	g := p.stage()
	consumers := p.s.Consumers(g)
	if len(consumers) == 0 {
		return
	}
	c := rapid.SampledFrom(consumers).Draw(p.t, "consumer")
	_ = p.s.ComputeAt(g.ID, c.ID, p.leaf(c))
}

func (p *primitives) inline() { _ = p.s.Inline(p.stage().ID) }

func (p *primitives) cacheWrite() { _, _ = p.s.CacheWrite(p.stage().ID) }

// cacheRead copies one of a stage's operands, mostly inside one of the stage's loops.
func (p *primitives) cacheRead() {
	g := p.stage()
	loads := expr.Loads(g.Body)
	if len(loads) == 0 {
		return
	}
	l := rapid.IntRange(0, len(loads)-1).Draw(p.t, "load")
	var perm []int
	for d := range loads[l].Tensor.Shape {
		perm = append(perm, d)
	}
	if len(perm) == 0 {
		return
	}
	c, err := p.s.CacheRead(g.ID, l, rapid.Permutation(perm).Draw(p.t, "order"))
	if err == nil && rapid.IntRange(0, 3).Draw(p.t, "inside") > 0 {
		_ = p.s.ComputeAt(c, g.ID, p.leaf(g))
	}
}

func (p *primitives) widen() {
	to := rapid.SampledFrom([]array.DType{array.Int16, array.Int32, array.Int64}).Draw(p.t, "to")
	_, _ = p.s.Widen(p.stage().ID, rapid.IntRange(0, 2).Draw(p.t, "load"), to)
}

func (p *primitives) extend() {
	_, _ = p.s.Extend(p.stage().ID, rapid.Int64Range(1, 9).Draw(p.t, "multiple"))
}

func (p *primitives) adjoin() {
	as := rapid.SampledFrom([]array.DType{array.Invalid, array.Int16, array.Int32}).Draw(p.t, "as")
	_, _ = p.s.Adjoin(p.stage().ID, rapid.Int64Range(1, 9).Draw(p.t, "multiple"), as)
}

func (p *primitives) interleave() {
	draw := func(name string) int { return rapid.IntRange(0, 2).Draw(p.t, name) }
	_, _ = p.s.Interleave(p.stage().ID, draw("load"), draw("dim"), draw("inside"), rapid.Int64Range(1, 5).Draw(p.t, "factor"))
}

func (p *primitives) round() {
	_, _ = p.s.Round(p.stage().ID, rapid.IntRange(0, 1).Draw(p.t, "load"))
}

func (p *primitives) dot() {
	g := p.stage()
	_ = p.s.Dot(g.ID, p.leaf(g))
}

func (p *primitives) rfactor() {
	g := p.stage()
	if len(g.Reduce) == 0 {
		return
	}
	factor := rapid.SampledFrom([]int64{1, 2, 3, 4, 5, 8, 16}).Draw(p.t, "factor")
	part := rapid.SampledFrom([]schedule.Part{schedule.Lanes, schedule.Pieces}).Draw(p.t, "part")
	_, _ = p.s.RFactor(g.ID, rapid.IntRange(0, len(g.Reduce)-1).Draw(p.t, "axis"), factor, part)
}

func (p *primitives) parallel() {
	g := p.stage()
	_ = p.s.Parallel(g.ID, p.leaf(g))
}

func (p *primitives) vectorize() {
	g := p.stage()
	_ = p.s.Vectorize(g.ID, p.leaf(g))
}

func (p *primitives) unroll() {
	g := p.stage()
	_ = p.s.Unroll(g.ID, p.leaf(g))
}

// packs gives some constants a drawn layout.
func (p *primitives) packs() {
	for c, constant := range p.s.Workload.Constants {
		if !rapid.Bool().Draw(p.t, "pack") {
			continue
		}
		var dims []schedule.PackDim
		for d := range constant.Shape {
			if f := rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 4, 16}).Draw(p.t, "factor"); f > 0 {
				dims = append(dims, schedule.PackDim{Dim: d, Factor: f}, schedule.PackDim{Dim: d, Factor: f, Inner: true})
			} else {
				dims = append(dims, schedule.PackDim{Dim: d})
			}
		}
		if len(dims) > 0 {
			_ = p.s.Pack(c, rapid.Permutation(dims).Draw(p.t, "layout"))
		}
	}
}
