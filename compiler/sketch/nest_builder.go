package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// Builder applies primitives to a schedule. The first error ends the sketch, which thus reads as a list of steps. Who
// makes a Builder must defer Catch.
type Builder struct {
	S *schedule.Schedule
}

// failed is the panic value of a primitive's error; Catch converts it back.
type failed struct{ error }

// Catch sets err if a primitive failed in a callee.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failed:
		*err = r.error
	default:
		panic(r)
	}
}

// Do ends the sketch if a primitive returned an error.
func (b *Builder) Do(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// Get returns the result of a primitive; it ends the sketch if there is an error.
func Get[T any](result T, err error) T {
	if err != nil {
		panic(failed{err})
	}
	return result
}

// Split splits an iterator.
func (b *Builder) Split(stage, iter int, factor int64, tail schedule.Tail) (outer, inner int) {
	outer, inner, err := b.S.Split(stage, iter, factor, tail)
	b.Do(err)
	return outer, inner
}

// Fuse fuses neighbouring leaves, outermost first, into one.
func (b *Builder) Fuse(stage int, iters []int) int { return fused(b.S.Fuse, stage, iters) }

// FuseHeld is Fuse over what an execution has.
func (b *Builder) FuseHeld(stage int, iters []int) int { return fused(b.S.FuseHeld, stage, iters) }

func fused(fuse func(stage, a, b int) (int, error), stage int, iters []int) int {
	f := iters[0]
	for _, it := range iters[1:] {
		f = Get(fuse(stage, f, it))
	}
	return f
}

// Axes returns the first axes of a stage.
func Axes(count int) []int {
	axes := make([]int, count)
	for k := range axes {
		axes[k] = k
	}
	return axes
}

// FuseAxes fuses the first axes of a stage into one iterator; for zero axes it adds a loop of one iteration.
func (b *Builder) FuseAxes(stage, axes int) int {
	if axes == 0 {
		return Get(b.S.UnitLoop(stage))
	}
	return b.Fuse(stage, Axes(axes))
}

// MoveFirst reorders the leaves of a stage: the given iterators come first, then the others in their order.
func (b *Builder) MoveFirst(stage int, iters ...int) {
	order := slices.Clone(iters)
	for _, it := range b.S.Stages[stage].Leaves {
		if !slices.Contains(iters, it.ID) {
			order = append(order, it.ID)
		}
	}
	b.Do(b.S.Reorder(stage, order...))
}

// Mark applies a primitive to iterators of a stage, one after the other.
func (b *Builder) Mark(apply func(stage, iter int) error, stage int, iters ...int) {
	for _, it := range iters {
		b.Do(apply(stage, it))
	}
}

// UnrollInnermost splits the innermost reduction loops so that about ku iterations can be unrolled. It returns the
// loops and the number of trailing ones to unroll.
func (b *Builder) UnrollInnermost(acc int, reduction []int, extents []int64, ku int64) (all []int, unrolled int) {
	for k := len(reduction) - 1; k >= 0 && ku > 1; k-- {
		if extents[k] == 0 {
			break
		}
		if extents[k] <= ku {
			ku /= extents[k]
			unrolled++
			continue
		}
		outer, inner := b.Split(acc, reduction[k], ku, schedule.Peel)
		reduction = slices.Replace(reduction, k, k+1, outer, inner)
		return reduction, unrolled + 1
	}
	return reduction, unrolled
}

// ComputeAt computes a stage at a loop of a consumer.
func (b *Builder) ComputeAt(stage, consumer, iter int) {
	b.Do(b.S.ComputeAt(stage, consumer, iter))
}

// Unit holds the stages that one nest of loops computes: a map, or a reduction with the map that ends it.
type Unit struct {
	// Out is the stage with the outer loops; Acc is the reduction computed inside its tiles, or -1 for a map.
	Out, Acc int
	// Also lists outputs between Acc and Out, each computed from the one before and stored tile by tile, too.
	Also []int
	// Feeds lists the map stages that only this unit's reduction reads and that may be computed inside it, e.g.
	// padding.
	Feeds []int
}

// Stored returns the stages that the unit's nest stores, in order.
func (u Unit) Stored(s *schedule.Schedule) []*schedule.Stage {
	var list []*schedule.Stage
	for _, id := range append(slices.Clone(u.Also), u.Out) {
		list = append(list, s.Stages[id])
	}
	return list
}

// Whole describes schedules that compute a workload in one nest, that of stage Out. The stages in Inline are
// inlined first, in order.
type Whole struct {
	Out    int
	Inline []int
	searchspace.Family
}

// Where a stage that feeds a reduction is computed: at each load, in its own nest, in the block of tiles that reads
// it, or in the tile.
const (
	Inline = iota
	Alone
	InBlock
	InTile
)
