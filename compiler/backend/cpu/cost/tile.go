package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Tile is the unrolled or vectorised innermost part of a statement's nest.
type Tile struct {
	// first is the number of its first loop; axes holds how many values of each axis it has.
	first int
	axes  []float64
	// Vector is the vectorised axis, or -1. Lanes is the average number of elements per instruction, which is smaller
	// than a vector if the last one is partial.
	Vector int
	Lanes  float64
	// Operations is the number of instructions per operation of the body, Accumulators the number of result vectors
	// of a reduction.
	Operations, Accumulators float64
	// Vectors, Scalars and Gathers count vector loads, broadcast loads and loads of single lanes. Stores counts
	// vectors.
	Vectors, Scalars, Gathers, Stores float64
	// Steps is how often the tile runs in the kernel, Trips the iterations of the loop around it.
	Steps, Trips float64
	// Matrices is set for matrix instructions.
	Matrices bool
}

// Loads returns the number of instructions that read memory.
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
	results := x.Result.Elements(w.axes) / w.Lanes
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

// LanesOf returns how many elements of a stage's type fit into a vector.
func (a *Analysis) LanesOf(g *schedule.Stage) float64 {
	return float64(max(1, int64(a.Target.CPU.VectorBytes)/g.Tensor.DType.Bytes()))
}

// lanes returns the average number of elements per instruction when an axis is divided into vectors. A short rest is
// computed in powers of two.
func lanes(axis, vector, limit float64) float64 {
	parts := func(n float64) float64 { return float64(microarch.Parts(int64(n), int64(limit))) }
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

// countLoads adds the loads that one step of a tile needs for an access, each element once.
func (a *Analysis) countLoads(x *Statement, w *Tile, r *Access) {
	if r.Producer >= 0 && a.inRegisters(&a.Statements[r.Producer]) {
		return
	}
	n := min(r.Elements(w.axes), r.Loads*product(w.axes))
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

// Depth returns how many steps of a reduction are unrolled, or 0 without a reduction.
func (w *Tile) Depth() float64 {
	if w.Accumulators == 0 {
		return 0
	}
	return w.Operations / w.Accumulators
}

// Registers returns how many vectors a step occupies: accumulators, the vectors of the operand that its rows share,
// and the broadcast operand.
func (w *Tile) Registers() float64 {
	return w.Accumulators + w.Vectors/max(1, w.Depth()) + min(1, w.Scalars)
}

// spilled returns how many registers are spilled and reloaded each time a tile runs.
func (a *Analysis) spilled(x *Statement) float64 {
	w := &x.Tile
	if x.Nest.Stage.Combiner == expr.None || w.Matrices {
		return 0
	}
	loads, _ := microarch.RegisterPressure(a.Target, w.Registers(), w.Accumulators, w.Depth())
	return loads * w.Depth()
}

// matrices builds the tile of a statement whose sums are computed by matrix instructions: everything inside the leaf
// with their terms. Its vectors are then matrices, and its lanes the extent of an instruction. ok is false for other
// statements.
func (a *Analysis) matrices(x *Statement) (w Tile, ok bool) {
	g, n := x.Nest.Stage, &x.Nest
	w = Tile{axes: a.room.take(len(n.Axes)), Vector: -1, Lanes: 1, Trips: 1}
	for k, loop := range n.loops {
		if it := g.Leaves[loop.leaf]; it.Kind == schedule.Matrices && it.Format.Tile() {
			w.first, ok = k, true
		}
	}
	if !ok {
		return w, false
	}
	n.within(w.first, w.axes, &a.room)
	inside := g.Leaves[n.loops[w.first].leaf+1:]
	rows, columns := 1.0, 1.0
	for k, it := range inside {
		switch extent := n.extent[it.ID]; len(inside) - k {
		case 1:
			columns = math.Ceil(extent / schedule.TileColumns)
			w.Vector = axisOf(it)
		case 2:
			rows *= math.Ceil(extent / schedule.TileRows)
		default:
			rows *= extent
		}
	}
	w.Matrices = true
	w.Operations, w.Accumulators, w.Vectors = rows*columns, rows*columns, rows+columns
	w.Lanes = product(w.axes) / w.Operations
	w.Steps = x.Iterations() / max(1, product(w.axes))
	if w.first > 0 {
		w.Trips = n.loops[w.first-1].trips
	}
	return w, true
}
