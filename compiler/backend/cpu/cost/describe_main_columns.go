package cost

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// details describes the main statement.
var details = []column{
	{"main_lanes_used", func(a *candidate) float64 { return a.Heaviest.Tile.Lanes / a.LanesOf(a.Heaviest.Nest.Stage) }},
	{"main_accumulators", func(a *candidate) float64 { return a.Heaviest.Tile.Accumulators }},
	{"main_registers", func(a *candidate) float64 {
		w := &a.Heaviest.Tile
		return w.Registers() / float64(max(1, a.Target.CPU.VectorRegisters))
	}},
	{"main_vectors", func(a *candidate) float64 { return a.perOperation(a.Heaviest.Tile.Vectors) }},
	{"main_scalars", func(a *candidate) float64 { return a.perOperation(a.Heaviest.Tile.Scalars) }},
	{"main_gathers", func(a *candidate) float64 { return a.perOperation(a.Heaviest.Tile.Gathers) }},
	{"main_stores", func(a *candidate) float64 { return a.perOperation(a.Heaviest.Tile.Stores) }},
	{"main_operations", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Tile.Operations) }},
	{"main_depth", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Tile.Depth()) }},
	{"main_trips", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Tile.Trips) }},
	{"main_reduction", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Terms()) }},
	{"main_times", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Times) }},
	{"main_filled", func(a *candidate) float64 { return a.Heaviest.Filled }},
	{"main_overlap", func(a *candidate) float64 { return a.Heaviest.Nest.Overlap }},
	{"main_loops", func(a *candidate) float64 { return float64(len(a.Heaviest.Traffic.Loops)) }},
	{"main_body", func(a *candidate) float64 { return a.Heaviest.Operations.Slots() }},
	{"main_port_share", func(a *candidate) float64 { return a.ofMain(a.Heaviest.Cycles.Ports) }},
	{"main_load_share", func(a *candidate) float64 { return a.ofMain(a.Heaviest.Cycles.Loads) }},
	{"main_latency_share", func(a *candidate) float64 { return a.ofMain(a.Heaviest.Cycles.Latency) }},
	{"main_issue_share", func(a *candidate) float64 { return a.ofMain(a.Heaviest.Cycles.Issue) }},
	{"main_wait_share", func(a *candidate) float64 { return 1 - a.ofMain(a.Heaviest.Cycles.Busy) }},
	{"main_chunks", func(a *candidate) float64 { return costfeatures.Log(a.Heaviest.Cycles.Chunks) }},
	{"main_share", func(a *candidate) float64 { return a.Heaviest.Cycles.Share * a.workers() }},
}

// perOperation returns a count of the main statement's tile per operation, ofMain the fraction of its cycles.
func (a *candidate) perOperation(n float64) float64 {
	return costfeatures.Share(n, a.Heaviest.Tile.Operations)
}
func (a *candidate) ofMain(cycles float64) float64 {
	return costfeatures.Share(cycles, a.Heaviest.Cycles.Work())
}

// curve returns the arithmetic intensity of the main statement, in operations per byte touched, by the loops'
// iterations.
func curve() []column {
	var list []column
	for k := 6; k <= 24; k += 2 {
		at := float64(k)
		list = append(list, column{fmt.Sprintf("intensity_%d", k), func(a *candidate) float64 { return intensity(a.Heaviest, at) }})
	}
	return list
}

// intensity interpolates the logarithm of operations per byte for a loop of 2^at iterations.
func intensity(x *Statement, at float64) float64 {
	before, have := 0.0, false
	var from float64
	for _, l := range x.Traffic.Loops {
		n, v := math.Log2(max(1, l.Iterations)), costfeatures.Ratio(l.Iterations*max(1, x.Operations.Slots()), l.Touch.Bytes)
		if n >= at {
			if !have || n == from {
				return v
			}
			return before + (v-before)*(at-from)/(n-from)
		}
		before, from, have = v, n, true
	}
	return before
}

// loops returns the columns that describe where the main statement's loops exceed each cache.
func loops() []column {
	var list []column
	for s, name := range []string{"l1", "l2", "tlb", "l3"} {
		add := func(kind string, value func(x *Traffic, l microarch.Level) float64) {
			list = append(list, column{kind + "_" + name, func(a *candidate) float64 {
				if s >= len(a.Levels) {
					return 0
				}
				return value(&a.Heaviest.Traffic, a.Levels[s])
			}})
		}
		add("outgrow", outgrown)
		add("tile", func(x *Traffic, l microarch.Level) float64 {
			return costfeatures.Ratio(x.Loops[0].Touch.Of(l.Pages), l.Capacity)
		})
		add("refill", func(x *Traffic, l microarch.Level) float64 {
			return costfeatures.Ratio(x.Fills[s], x.Loops[len(x.Loops)-1].Touch.Of(l.Pages))
		})
	}
	return list
}

// outgrown returns, as a logarithm, the fraction of the main statement's iterations in the largest loop whose memory
// fits into a cache.
func outgrown(x *Traffic, cache microarch.Level) float64 {
	held := 1.0
	for _, l := range x.Loops {
		if l.Touch.Of(cache.Pages) > cache.Capacity {
			break
		}
		held = l.Iterations
	}
	return costfeatures.Ratio(held, x.Loops[len(x.Loops)-1].Iterations)
}

// shown is the number of tensors of the main statement with columns of their own.
const shown = 3

// tensors returns the columns of the tensors of the main statement, ordered by their share of the first-level cache.
func tensors() []column {
	var list []column
	for k := range shown {
		add := func(name string, value func(a *candidate, b *Buffer) float64) {
			list = append(list, column{fmt.Sprintf("tensor%d_%s", k, name), func(a *candidate) float64 {
				if k >= len(a.Heaviest.Traffic.Buffers) {
					return 0
				}
				return value(a, &a.Heaviest.Traffic.Buffers[k])
			}})
		}
		add("kind", func(_ *candidate, b *Buffer) float64 { return kind(b) })
		add("bytes", func(_ *candidate, b *Buffer) float64 { return costfeatures.Log(b.Touched.Bytes) })
		add("fills_l1", func(a *candidate, b *Buffer) float64 { return a.loss(b.Fills[0]) })
		add("fills_l2", func(a *candidate, b *Buffer) float64 { return a.loss(b.Fills[1]) })
		add("fills_tlb", func(a *candidate, b *Buffer) float64 { return a.loss(b.Fills[2]) })
		add("refill_l1", func(_ *candidate, b *Buffer) float64 { return costfeatures.Ratio(b.Fills[0], b.Touched.Lines) })
		add("refill_l2", func(_ *candidate, b *Buffer) float64 { return costfeatures.Ratio(b.Fills[1], b.Touched.Lines) })
		add("reuse", func(a *candidate, b *Buffer) float64 {
			return costfeatures.Ratio(a.Heaviest.Iterations()*b.Access.Loads*float64(b.Access.Tensor.DType.Bytes()), b.Touched.Bytes)
		})
		add("distance", func(a *candidate, b *Buffer) float64 {
			return costfeatures.Ratio(b.Distance, float64(a.Target.CPU.L1DataBytes))
		})
		add("step", func(a *candidate, b *Buffer) float64 { return vectorStep(b, a.Heaviest) })
		add("row", func(_ *candidate, b *Buffer) float64 { return rowPower(b) })
	}
	return list
}

// kind returns 0 for an input, 1 for a constant, 2 for a packed constant, 3 for the result of another statement, and
// 4 for the result.
func kind(b *Buffer) float64 {
	switch x := b.Access; {
	case x.Store:
		return 4
	case x.Producer >= 0:
		return 3
	case x.Packed:
		return 2
	case x.Tensor.Role == expr.Constant:
		return 1
	}
	return 0
}

// vectorStep returns 0 if all lanes read the same element, 1 if they read adjacent elements, and 2 otherwise.
func vectorStep(b *Buffer, x *Statement) float64 {
	switch v := x.Tile.Vector; {
	case v < 0 || !b.Access.Moves(v):
		return 0
	case b.Access.Step(v) == 1:
		return 1
	}
	return 2
}

// rowPower returns the logarithm of the largest power of two that divides the bytes of a row, the last dimension.
// Rows at such distances map to few cache sets.
func rowPower(b *Buffer) float64 {
	shape := b.Access.Tensor.Shape
	if len(shape) < 2 || b.Access.Packed {
		return 0
	}
	bytes := shape[len(shape)-1] * b.Access.Tensor.DType.Bytes()
	power := 0.0
	for ; bytes > 0 && bytes%2 == 0; bytes /= 2 {
		power++
	}
	return power
}
