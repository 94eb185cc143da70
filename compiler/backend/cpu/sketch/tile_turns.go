package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// A depthwise convolution of integers has no neighbours to multiply along its channels, which are the lanes. Its terms
// are those of a row of the window: vectors of as many positions, one beside the other, take turns in a register,
// which serves all rows of the window that the position is in. Windows get as many columns as instructions take terms,
// those behind the last with weights of zero.

// turnSpill is the cycles that a register of terms costs more that finds no room, turnStart those that beginning a
// tile costs. Fitted to convolutions of 3x3 to 7x7 on Emerald Rapids.
const turnSpill, turnStart = 1.5, 40

// window says how terms of a row of a window are multiplied.
type window struct {
	// data is the access that takes turns, step the positions between two terms, stride those between two sums.
	data         int
	step, stride int64
	// extended is set where columns are added to the window.
	extended bool
}

// fewestRows are those of a window that a register of terms must serve on average, which are fewer where sums are
// several rows apart: to make one takes as long as to multiply without it.
const fewestRows = 2

// windowTerms is the tile of a sum whose terms are in the rows of a window, with vectors that take turns; nil where
// that does not help.
func windowTerms(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target) *Tile {
	a, b, product := schedule.Factors(acc.Body)
	if !product || acc.Combiner != expr.Sum || acc.Tensor.DType != array.Int32 || t.CPU.Arch != target.X86 || len(acc.Reduce) < 2 {
		return nil
	}
	data, weights := a, b
	if s.Constant(a.Tensor) >= 0 {
		data, weights = b, a
	}
	last := acc.Reduce[len(acc.Reduce)-1]
	by := dotInstruction(t, data.Tensor.DType, weights.Tensor.DType)
	if by.terms == 0 || by.wide != array.Invalid || last.Extent < by.terms-1 || !isProductOfCasts(acc.Body, acc.Tensor.DType) {
		return nil
	}
	like, err := schedule.Replay(s.Workload, s.Trace()) // s itself stays as it is
	if err != nil {
		return nil
	}
	w := &window{extended: last.Extent%by.terms != 0}
	copied := u
	if w.extended {
		copies, err := like.Extend(acc.ID, by.terms)
		if err != nil {
			return nil
		}
		copied.Feeds = append(slices.Clone(u.Feeds), max(copies[0], copies[1]))
	}
	x := newTile(like, like.Stages[acc.ID], u, t)
	if !x.findWindow(like.Stages[acc.ID], by, w) {
		return nil
	}
	x.fedBy(like, like.Stages[acc.ID], copied)
	return x
}

// findWindow sets how terms are multiplied, if both operands have the lanes as neighbours, and the data those of a
// window along the last reduction axis.
func (x *Tile) findWindow(acc *schedule.Stage, by instruction, w *window) bool {
	if x.lanes < 2 || x.group > 0 || len(x.packs) != 1 || len(x.panels) > 0 || x.packs[0].last < 0 || x.row < 0 {
		return false
	}
	last, apart := len(acc.Reduce)-1, int64(0)
	for k, l := range expr.Loads(acc.Body) {
		if x.accesses[k].Packed {
			continue
		}
		w.data = k
		if !sketch.Adjacent(l, acc.Axes[x.vec]) {
			return false
		}
		for _, dim := range x.accesses[k].Dims {
			if step := dim[len(x.extents)+last]; step != 0 {
				w.step, w.stride = step, dim[x.col]
			}
			apart = max(apart, dim[x.row])
		}
	}
	if w.step == 0 || w.stride == 0 || sketch.Product(x.reduce[:last]) < fewestRows*apart {
		return false
	}
	x.dot = &dotting{instruction: by, data: w.data, weights: 1 - w.data, window: w}
	x.steps = slices.Clone(x.reduce)
	x.steps[last] /= by.terms
	return true
}

// turns reports whether the terms of a window take turns in registers.
func (x *Tile) turns() bool { return x.dot != nil && x.dot.window != nil }

// applyWindow gives the window as many columns as instructions take, and computes what fed it where the copy is.
func (x *Tile) applyWindow(b *sketch.Builder, u sketch.Unit) []int {
	if !x.dot.window.extended {
		return u.Feeds
	}
	copies, err := b.S.Extend(u.Acc, x.dot.terms)
	b.Do(err)
	for _, f := range u.Feeds {
		b.Mark(func(stage, _ int) error { return b.S.Inline(stage) }, f, 0)
	}
	return []int{max(copies[0], copies[1])}
}

// turnsOf is how many registers of terms a tile of tv vectors fills: one for each position that a row of terms begins
// at.
func (x *Tile) turnsOf(tv float64, z tileSizes) float64 {
	w, last := x.dot.window, len(x.steps)-1
	columns := make([]int64, 0, z.tw*x.steps[last])
	for c := range z.tw {
		for q := range x.steps[last] {
			columns = append(columns, c*w.stride+q*x.dot.terms*w.step)
		}
	}
	slices.Sort(columns)
	extents := x.tileExtents(z)
	extents[x.col] = 1
	copy(extents[len(x.extents):], x.reduce[:last])
	return tv * x.accesses[w.data].Elements(extents) * float64(len(slices.Compact(columns)))
}

// turnedCycles is the cycles of one tile of tv vectors whose window is written out whole: registers of terms that find
// no room are stored, and read again by what multiplies them.
func (x *Tile) turnedCycles(t *target.Target, tv float64, z tileSizes) float64 {
	acc, steps := tv*float64(z.th*z.tw), float64(sketch.Product(x.steps))
	turns, products := x.turnsOf(tv, z), acc*steps
	extents := x.tileExtents(z)
	copy(extents[len(x.extents):], x.reduce)
	loads := tv * x.accesses[x.dot.data].Elements(extents)
	spilled := max(0, acc+turns-float64(t.CPU.VectorRegisters))
	loads += products * min(1, spilled/turns)
	if acc+turns+tv*steps > float64(t.CPU.VectorRegisters) { // weights are read from memory for each product
		loads += products
	} else {
		loads += tv * steps
	}
	if z.pf > 0 {
		loads += tv * steps
	}
	operations := products*x.dot.operations + turns*float64(x.dot.terms) + loads + acc
	latency := (machine.ResultLatency + x.dot.late) * steps / max(1, machine.InFlight/operations)
	busy, load := products*x.dot.slots+turns*machine.Turns(t, x.dot.terms), loads*machine.LoadSlot
	return max(busy, load, latency, operations/machine.Issue) + machine.Hidden*min(busy, load) + turnSpill*spilled + windowEnd*acc + turnStart
}
