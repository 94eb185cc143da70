package cost

import (
	"math"
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Tile is what is written out of a statement's nest: its innermost loops that are unrolled or run in vectors.
type Tile struct {
	// first is the number of its first loop, axes how many values of each axis it has.
	first int
	axes  []float64
	// Vector is the axis along which vectors lie; -1 where there are none. Lanes is how many elements an instruction
	// computes, on average: fewer than a vector has where the last one is cut short.
	Vector int
	Lanes  float64
	// Operations is the instructions of one operation of the body, Accumulators the vectors of results that a
	// reduction keeps.
	Operations, Accumulators float64
	// Vectors, Scalars and Gathers are the loads of vectors, of values for all lanes, and of lanes one by one; Stores
	// are vectors.
	Vectors, Scalars, Gathers, Stores float64
	// Steps is how often the tile is run in the kernel, Trips how often the loop around it runs at a time.
	Steps, Trips float64
	// Matrices is set where operations multiply matrices.
	Matrices bool
}

// Loads is the instructions that read memory.
func (w *Tile) Loads() float64 { return w.Vectors + w.Scalars + w.Gathers }

// tile finds a statement's tile.
func (a *Analysis) tile(x *Statement) Tile {
	if w, ok := a.matrices(x); ok {
		return w
	}
	g, n := x.Nest.Stage, &x.Nest
	w := Tile{first: len(n.loops), axes: a.room.take(len(n.Axes)), Vector: -1, Lanes: 1, Trips: 1}
	for w.first > 0 && writtenOut(g.Leaves[n.loops[w.first-1].leaf].Kind) {
		w.first--
	}
	n.within(w.first, w.axes, &a.room)
	terms := 1.0
	for _, it := range g.Leaves {
		switch it.Kind {
		case schedule.Vectorized:
			if w.Vector = axisOf(it); w.Vector >= 0 {
				w.Lanes = lanes(float64(g.AxisVar(w.Vector).Extent), n.extent[it.ID], a.LanesOf(g))
			}
		case schedule.Dotted:
			terms = n.extent[it.ID]
		}
	}
	w.Operations = product(w.axes) / w.Lanes / terms
	w.Steps = x.Iterations() / max(1, product(w.axes))
	if w.first > 0 {
		w.Trips = n.loops[w.first-1].trips
	}
	results := x.Result.elements(w.axes) / w.Lanes
	if g.Combiner != expr.None {
		w.Accumulators = results
	} else if !a.inRegisters(x) {
		w.Stores = results
	}
	for i := range x.Reads {
		a.countLoads(x, &w, &x.Reads[i])
	}
	return w
}

func writtenOut(k schedule.Kind) bool {
	return k == schedule.Vectorized || k == schedule.Unrolled || k == schedule.Dotted
}

// LanesOf is how many elements of a stage's type fit a vector.
func (a *Analysis) LanesOf(g *schedule.Stage) float64 {
	return float64(max(1, int64(a.Target.CPU.VectorBytes)/g.Tensor.DType.Bytes()))
}

// Lanes is how many elements an instruction computes on average where an axis is cut into vectors: one that is short
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
func (a *Analysis) countLoads(x *Statement, w *Tile, r *Access) {
	if r.Producer >= 0 && a.inRegisters(&a.Statements[r.Producer]) {
		return
	}
	n := min(r.elements(w.axes), r.Loads*product(w.axes))
	switch {
	case w.Vector < 0 || !r.Moves(w.Vector):
		w.Scalars += n
	case r.Step(w.Vector) == 1:
		w.Vectors += n / w.Lanes
	default:
		w.Gathers += n
	}
}

// inRegisters reports whether a statement's results are few enough to stay in registers until they are read.
func (a *Analysis) inRegisters(x *Statement) bool {
	if x.Consumer < 0 {
		return false
	}
	g := x.Nest.Stage
	n := 1.0
	for _, e := range x.Nest.Axes[:len(g.Axes)] {
		n *= e
	}
	return n/a.LanesOf(g) <= 2*float64(a.Target.CPU.VectorRegisters)
}

// Depth is how many steps of a reduction are written out; 0 where there is none.
func (w *Tile) Depth() float64 {
	if w.Accumulators == 0 {
		return 0
	}
	return w.Operations / w.Accumulators
}

// Registers is how many vectors a step keeps: accumulators, what lies side by side of the operand that its rows share,
// and the value for all lanes that it is multiplied by.
func (w *Tile) Registers() float64 {
	return w.Accumulators + w.Vectors/max(1, w.Depth()) + min(1, w.Scalars)
}

// spilled is how many registers are stored and loaded again each time that a tile runs. Where a loop has two steps and
// registers are too few, LLVM keeps no accumulator in its own.
func (a *Analysis) spilled(x *Statement) float64 {
	w := &x.Tile
	over := w.Registers() - float64(a.Target.CPU.VectorRegisters)
	switch {
	case x.Nest.Stage.Combiner == expr.None || w.Matrices || over <= 0:
		return 0
	case w.Depth() == 2:
		return 2 * w.Operations
	}
	return 2 * over * w.Depth()
}
