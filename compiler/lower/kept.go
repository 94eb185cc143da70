package lower

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// checkDecays rejects schedules that would apply a decay in another order than that of the reduction's first axis,
// or read a loop's kept values before they are complete.
func checkDecays(s *schedule.Schedule) {
	for _, g := range s.Stages {
		if g.Decay != nil {
			first := slices.IndexFunc(g.Leaves, func(it *schedule.Iter) bool { return it.Reduce })
			if it := g.Leaves[first]; it.Axis != len(g.Axes) || it.Kind != schedule.Serial {
				fail("stage %d decays along its first reduction axis, which is not the outermost of them, or not a plain loop", g.ID)
			}
		}
		if !g.KeptInside() {
			if g.Kept != nil && slices.ContainsFunc(g.Loads(), func(l *expr.Load) bool { return l.Tensor == g.Tensor }) {
				fail("stage %d is carried across pieces, so the loop over them in stage %d must compute it", g.ID, g.Kept.ID)
			}
			continue
		}
		if g.Kept.LeafIndex(g.At) != 0 {
			fail("stage %d is kept by a loop of stage %d that is not the outermost", g.ID, g.Kept.ID)
		}
		for _, c := range s.Consumers(g) {
			if !within(c, g.Kept) && needs(s, g.Kept, c, map[*schedule.Stage]bool{}) {
				fail("stage %d reads stage %d after the loop that needs it", c.ID, g.ID)
			}
		}
	}
}

// needs reports whether a stage depends on another.
func needs(s *schedule.Schedule, g, from *schedule.Stage, seen map[*schedule.Stage]bool) bool {
	if g == nil || seen[g] {
		return false
	}
	seen[g] = true
	return g == from || slices.ContainsFunc(g.Loads(), func(l *expr.Load) bool { return needs(s, s.Producer(l.Tensor), from, seen) })
}

// keep allocates the stages that the nest of g keeps, for the part of g that starts at mins.
func (l *lowerer) keep(g *schedule.Stage, mins []expr.Expr, extents []int64) (allocs ir.Block) {
	for _, k := range l.order {
		if !k.KeptInside() || k.Kept != g {
			continue
		}
		last := len(k.Axes) - 1
		from, size := []expr.Expr{}, []int64{}
		for _, a := range k.KeptAxes {
			from, size = append(from, mins[a]), append(size, extents[a])
		}
		l.bindings[k.Tensor] = l.scratch(k, append(from, expr.I(0)), append(size, k.Tensor.Shape[last]))
		l.bindings[k.Tensor].exact = true
		allocs = append(allocs, &ir.Alloc{Buffer: l.bindings[k.Tensor].buffer})
	}
	return allocs
}

// ends returns the first elements and the extents of a region.
func ends(region []span) (mins []expr.Expr, extents []int64) {
	for _, s := range region {
		mins, extents = append(mins, s.min), append(extents, s.extent)
	}
	return mins, extents
}

// keptRegion returns the part of a kept stage that an iteration of the nest computes.
func (n *nest) keptRegion(p *schedule.Stage) (region []span) {
	for _, a := range p.KeptAxes {
		region = append(region, span{n.mins[a], n.extents[a], nil})
	}
	return append(region, n.span(p.At))
}
