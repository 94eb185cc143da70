package describe

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Code is about how many instructions the source of a candidate has: those of the innermost tiles of its statements,
// which are written out. A compiler's time grows with it. Like features, it is told from the schedule, without
// lowering it.
func Code(s *schedule.Schedule, t *target.Target) float64 {
	a := analyses.Get().(*analysis)
	defer analyses.Put(a)
	a.run(s, t, 0)
	code := 0.0
	for k := range a.statements {
		x := &a.statements[k]
		code += x.written() * x.copies()
	}
	a.s, a.t = nil, nil
	return code
}

// written is the instructions of the innermost tile.
func (x *statement) written() float64 {
	return x.inner.operations*x.ops.slots() + x.inner.loads() + x.inner.stores
}

// parted is how many parts loops are divided into where a border is told from the inside by their index: before it,
// inside, and after it, along rows and along columns.
const parted = 9

// copies is how often the tile is written.
func (x *statement) copies() float64 {
	if x.ops.guards > 0 {
		return parted
	}
	return 1
}
