package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// turnSpill is the additional cycles of a spilled register of terms, turnStart those of starting a tile. Fitted to
// convolutions of 3x3 to 7x7 on Emerald Rapids.
const turnSpill, turnStart = 1.5, 40

// window describes how the terms of a window's row are multiplied. A depthwise convolution of integers has no
// neighbours to multiply along its channels, which are the lanes. Its terms are those of a window's row instead: the
// vectors of adjacent positions are interleaved in a register, which serves all rows of the window that contain the
// position. Windows are extended to as many columns as instructions take terms, with zero weights.
type window struct {
	// data is the interleaved access, step the number of positions between two terms, stride that between two sums.
	data         int
	step, stride int64
	// extended is set if columns are added to the window.
	extended bool
}

// minRows is the minimum number of window rows that a register of terms must serve on average. Sums that are
// several rows apart use fewer, and building the register takes as long as multiplying without it.
const minRows = 2

// windowTerms returns the tile of a sum whose terms are in the rows of a window, with interleaved vectors, or nil if
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
	like, err := schedule.Replay(s.Workload, s.Trace()) // leave s unchanged
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

// findWindow sets how terms are multiplied, if the lanes are contiguous in both operands, and the data of a window
// lies along the last reduction axis.
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
		for d := range l.Index {
			along := func(axis int) int64 { return int64(x.accesses[k].Coefficient(d, axis)) }
			if step := along(len(x.extents) + last); step != 0 {
				w.step, w.stride = step, along(x.col)
			}
			apart = max(apart, along(x.row))
		}
	}
	if w.step == 0 || w.stride == 0 || sketch.Product(x.reduce[:last]) < minRows*apart {
		return false
	}
	x.dot = &dotting{instruction: by, data: w.data, weights: 1 - w.data, window: w}
	x.steps = slices.Clone(x.reduce)
	x.steps[last] /= by.terms
	return true
}

// turns reports whether the terms of a window are interleaved in registers.
func (x *Tile) turns() bool { return x.dot != nil && x.dot.window != nil }

// applyWindow extends the window to an instruction's number of columns, and computes the previous feed in the copy.
func (x *Tile) applyWindow(b *sketch.Builder, u sketch.Unit) []int {
	if !x.dot.window.extended {
		return u.Feeds
	}
	copies := sketch.Get(b.S.Extend(u.Acc, x.dot.terms))
	for _, f := range u.Feeds {
		b.Do(b.S.Inline(f))
	}
	return []int{max(copies[0], copies[1])}
}

// turnsOf returns how many registers of terms a tile of tv vectors fills: one for each starting position of a row of
// terms.
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
	copy(extents[len(x.extents):], floats(x.reduce[:last]))
	return tv * x.accesses[w.data].Elements(extents) * float64(len(slices.Compact(columns)))
}

// turnedCycles returns the cycles of one tile of tv vectors with an unrolled window. Registers of terms that do not
// fit are spilled and read by the multiply instructions.
func (x *Tile) turnedCycles(t *target.Target, tv float64, z tileSizes) float64 {
	acc, steps := tv*float64(z.th*z.tw), float64(sketch.Product(x.steps))
	turns, products := x.turnsOf(tv, z), acc*steps
	extents := x.tileExtents(z)
	copy(extents[len(x.extents):], floats(x.reduce))
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
	latency := (microarch.ResultLatency + x.dot.late) * steps / max(1, microarch.InFlight/operations)
	busy, load := products*x.dot.slots+turns*microarch.Turns(t, x.dot.terms), loads*microarch.LoadSlot
	return microarch.Overlap(busy, load, latency, operations/microarch.Issue) + turnSpill*spilled + windowEnd*acc + turnStart
}
