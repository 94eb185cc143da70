package describe

import (
	"math"
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tile is what is written out of a statement's nest: its innermost loops that are unrolled or run in vectors.
type tile struct {
	// first is the number of its first loop, axes how many values of each axis it has.
	first int
	axes  []float64
	// vector is the axis along which vectors lie; -1 where there are none. lanes is how many elements an instruction
	// computes, on average: fewer than a vector has where the last one is cut short.
	vector int
	lanes  float64
	// operations is the instructions of one operation of the body, accumulators the vectors of results that a
	// reduction keeps.
	operations, accumulators float64
	// vectors, scalars and gathers are the loads of vectors, of values for all lanes, and of lanes one by one; stores
	// are vectors.
	vectors, scalars, gathers, stores float64
	// steps is how often the tile is run in the kernel, trips how often the loop around it runs at a time.
	steps, trips float64
}

// loads is the instructions that read memory.
func (w *tile) loads() float64 { return w.vectors + w.scalars + w.gathers }

// tile finds a statement's tile.
func (a *analysis) tile(x *statement) tile {
	g, n := x.nest.stage, &x.nest
	w := tile{first: len(n.loops), axes: a.room.take(len(n.axes)), vector: -1, lanes: 1, trips: 1}
	for w.first > 0 && writtenOut(g.Leaves[n.loops[w.first-1].leaf].Kind) {
		w.first--
	}
	n.within(w.first, w.axes, &a.room)
	terms := 1.0
	for _, it := range g.Leaves {
		switch it.Kind {
		case schedule.Vectorized:
			w.vector = axisOf(it)
			w.lanes = lanes(float64(g.AxisVar(w.vector).Extent), n.extent[it.ID], a.lanesOf(g))
		case schedule.Dotted:
			terms = n.extent[it.ID]
		}
	}
	w.operations = product(w.axes) / w.lanes / terms
	w.steps = x.iterations() / max(1, product(w.axes))
	if w.first > 0 {
		w.trips = n.loops[w.first-1].trips
	}
	results := x.result.elements(w.axes) / w.lanes
	if g.Combiner != expr.None {
		w.accumulators = results
	} else if !a.inRegisters(x) {
		w.stores = results
	}
	for i := range x.reads {
		a.countLoads(x, &w, &x.reads[i])
	}
	return w
}

func writtenOut(k schedule.Kind) bool { return k != schedule.Serial && k != schedule.Parallel }

// lanesOf is how many elements of a stage's type fit a vector.
func (a *analysis) lanesOf(g *schedule.Stage) float64 {
	return float64(max(1, int64(a.t.CPU.VectorBytes)/g.Tensor.DType.Bytes()))
}

// lanes is how many elements an instruction computes on average where an axis is cut into vectors: one that is short
// is computed in parts of powers of two.
func lanes(axis, vector, most float64) float64 {
	parts := func(n float64) float64 {
		return math.Floor(n/most) + float64(bits.OnesCount64(uint64(math.Mod(n, most))))
	}
	whole := math.Floor(axis / vector)
	return axis / max(1, whole*parts(vector)+parts(axis-whole*vector))
}

func product(list []float64) float64 {
	n := 1.0
	for _, v := range list {
		n *= v
	}
	return n
}

// countLoads adds the loads that one step of a tile needs of an access, each element once.
func (a *analysis) countLoads(x *statement, w *tile, r *access) {
	if r.producer >= 0 && a.inRegisters(&a.statements[r.producer]) {
		return
	}
	n := min(r.elements(w.axes), r.loads*product(w.axes))
	switch {
	case w.vector < 0 || !r.moves(w.vector):
		w.scalars += n
	case r.step(w.vector) == 1:
		w.vectors += n / w.lanes
	default:
		w.gathers += n
	}
}

// inRegisters reports whether a statement's results are few enough to stay in registers until they are read.
func (a *analysis) inRegisters(x *statement) bool {
	if x.consumer < 0 {
		return false
	}
	g := x.nest.stage
	n := 1.0
	for _, e := range x.nest.axes[:len(g.Axes)] {
		n *= e
	}
	return n/a.lanesOf(g) <= 2*float64(a.t.CPU.VectorRegisters)
}

// depth is how many steps of a reduction are written out.
func (w *tile) depth() float64 { return share(w.operations, w.accumulators) }

// registers is how many vectors a step keeps: accumulators, what lies side by side of the operand that its rows share,
// and the value for all lanes that it is multiplied by.
func (w *tile) registers() float64 {
	return w.accumulators + share(w.vectors, max(1, w.depth())) + min(1, w.scalars)
}

// spilled is how many registers are stored and loaded again each time that a tile runs. Where a loop has two steps and
// registers are too few, LLVM keeps no accumulator in its own.
func (a *analysis) spilled(x *statement) float64 {
	w := &x.inner
	over := w.registers() - float64(a.t.CPU.VectorRegisters)
	switch {
	case x.nest.stage.Combiner == expr.None || over <= 0:
		return 0
	case w.depth() == 2:
		return 2 * w.operations
	}
	return 2 * over * w.depth()
}
