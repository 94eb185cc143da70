package describe

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// details are those of the main statement.
var details = []column{
	{"main_lanes_used", func(a *analysis) float64 { return a.heaviest.inner.lanes / a.lanesOf(a.heaviest.nest.stage) }},
	{"main_accumulators", func(a *analysis) float64 { return a.heaviest.inner.accumulators }},
	{"main_registers", func(a *analysis) float64 {
		w := &a.heaviest.inner
		return w.registers() / float64(max(1, a.t.CPU.VectorRegisters))
	}},
	{"main_vectors", func(a *analysis) float64 { return share(a.heaviest.inner.vectors, a.heaviest.inner.operations) }},
	{"main_scalars", func(a *analysis) float64 { return share(a.heaviest.inner.scalars, a.heaviest.inner.operations) }},
	{"main_gathers", func(a *analysis) float64 { return share(a.heaviest.inner.gathers, a.heaviest.inner.operations) }},
	{"main_stores", func(a *analysis) float64 { return share(a.heaviest.inner.stores, a.heaviest.inner.operations) }},
	{"main_operations", func(a *analysis) float64 { return log(a.heaviest.inner.operations) }},
	{"main_depth", func(a *analysis) float64 {
		return log(share(a.heaviest.inner.operations, a.heaviest.inner.accumulators))
	}},
	{"main_trips", func(a *analysis) float64 { return log(a.heaviest.inner.trips) }},
	{"main_reduction", func(a *analysis) float64 { return log(a.heaviest.terms()) }},
	{"main_times", func(a *analysis) float64 { return log(a.heaviest.times) }},
	{"main_filled", func(a *analysis) float64 { return a.heaviest.filled }},
	{"main_overlap", func(a *analysis) float64 { return a.heaviest.nest.overlap }},
	{"main_loops", func(a *analysis) float64 { return float64(len(a.heaviest.trace.levels)) }},
	{"main_body", func(a *analysis) float64 { return a.heaviest.ops.slots() }},
	{"main_port_share", func(a *analysis) float64 { return share(a.heaviest.spent.ports, a.heaviest.spent.work()) }},
	{"main_load_share", func(a *analysis) float64 { return share(a.heaviest.spent.loads, a.heaviest.spent.work()) }},
	{"main_latency_share", func(a *analysis) float64 { return share(a.heaviest.spent.latency, a.heaviest.spent.work()) }},
	{"main_issue_share", func(a *analysis) float64 { return share(a.heaviest.spent.issue, a.heaviest.spent.work()) }},
	{"main_wait_share", func(a *analysis) float64 { return 1 - share(a.heaviest.spent.busy, a.heaviest.spent.work()) }},
	{"main_chunks", func(a *analysis) float64 { return log(a.heaviest.spent.chunks) }},
	{"main_share", func(a *analysis) float64 { return a.heaviest.spent.share * a.workers() }},
}

// terms is how many terms a result of the statement has.
func (x *statement) terms() float64 {
	return product(x.nest.axes[len(x.nest.stage.Axes):])
}

// curve is the arithmetic intensity of the main statement, operations for each byte touched, of loops with so many
// iterations.
func curve() []column {
	var list []column
	for k := 6; k <= 24; k += 2 {
		at := float64(k)
		list = append(list, column{fmt.Sprintf("intensity_%d", k), func(a *analysis) float64 { return a.heaviest.intensity(at) }})
	}
	return list
}

// intensity is the logarithm of operations for each byte, of a loop of 2^at iterations, between those that there are.
func (x *statement) intensity(at float64) float64 {
	before, have := 0.0, false
	var from float64
	for _, l := range x.trace.levels {
		n, v := math.Log2(max(1, l.iterations)), ratio(l.iterations*max(1, x.ops.slots()), l.touch.bytes)
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

// loops tell where the main statement's loops outgrow each store.
func loops() []column {
	var list []column
	for s, name := range []string{"l1", "l2", "tlb", "l3"} {
		list = append(list,
			column{"outgrow_" + name, func(a *analysis) float64 { return a.outgrown(s) }},
			column{"tile_" + name, func(a *analysis) float64 {
				if s >= len(a.stores) {
					return 0
				}
				return ratio(a.heaviest.trace.levels[0].touch.of(a.stores[s].Pages), a.stores[s].Capacity)
			}},
			column{"refill_" + name, func(a *analysis) float64 {
				if s >= len(a.stores) {
					return 0
				}
				levels := a.heaviest.trace.levels
				return ratio(a.heaviest.trace.fills[s], levels[len(levels)-1].touch.of(a.stores[s].Pages))
			}})
	}
	return list
}

// outgrown is the part of the main statement's iterations, as a logarithm, that the largest loop has whose memory a
// store holds.
func (a *analysis) outgrown(s int) float64 {
	if s >= len(a.stores) {
		return 0
	}
	levels := a.heaviest.trace.levels
	held := 1.0
	for _, l := range levels {
		if l.touch.of(a.stores[s].Pages) > a.stores[s].Capacity {
			break
		}
		held = l.iterations
	}
	return ratio(held, levels[len(levels)-1].iterations)
}

// shown is how many tensors of the main statement have columns of their own.
const shown = 3

// tensors are what the main statement reads and stores, those that fill the first cache most first.
func tensors() []column {
	var list []column
	for k := range shown {
		add := func(name string, value func(a *analysis, b *buffer) float64) {
			list = append(list, column{fmt.Sprintf("tensor%d_%s", k, name), func(a *analysis) float64 {
				if k >= len(a.heaviest.trace.buffers) {
					return 0
				}
				return value(a, &a.heaviest.trace.buffers[k])
			}})
		}
		add("kind", func(_ *analysis, b *buffer) float64 { return b.kind() })
		add("bytes", func(_ *analysis, b *buffer) float64 { return log(b.inner.bytes) })
		add("fills_l1", func(a *analysis, b *buffer) float64 { return a.loss(b.fills[0]) })
		add("fills_l2", func(a *analysis, b *buffer) float64 { return a.loss(b.fills[1]) })
		add("fills_tlb", func(a *analysis, b *buffer) float64 { return a.loss(b.fills[2]) })
		add("refill_l1", func(_ *analysis, b *buffer) float64 { return ratio(b.fills[0], b.inner.lines) })
		add("refill_l2", func(_ *analysis, b *buffer) float64 { return ratio(b.fills[1], b.inner.lines) })
		add("reuse", func(a *analysis, b *buffer) float64 {
			return ratio(a.heaviest.iterations()*b.access.loads*float64(b.access.tensor.DType.Bytes()), b.inner.bytes)
		})
		add("distance", func(a *analysis, b *buffer) float64 { return ratio(b.distance, float64(a.t.CPU.L1DataBytes)) })
		add("step", func(a *analysis, b *buffer) float64 { return b.vectorStep(a.heaviest) })
		add("row", func(_ *analysis, b *buffer) float64 { return b.rowPower() })
	}
	return list
}

// kind is 0 for an input, 1 for a constant, 2 for a packed one, 3 for what another statement computes, 4 for the
// result.
func (b *buffer) kind() float64 {
	switch x := b.access; {
	case x.store:
		return 4
	case x.producer >= 0:
		return 3
	case x.packed:
		return 2
	case x.tensor.Role == expr.Constant:
		return 1
	}
	return 0
}

// vectorStep is 0 where all lanes read the same, 1 where they read neighbours, and 2 where they read what lies apart.
func (b *buffer) vectorStep(x *statement) float64 {
	switch v := x.inner.vector; {
	case v < 0 || !b.access.moves(v):
		return 0
	case b.access.step(v) == 1:
		return 1
	}
	return 2
}

// rowPower is the logarithm of the largest power of two that divides the bytes of a row, the last dimension: rows that
// lie such a distance apart fall into few sets of a cache.
func (b *buffer) rowPower() float64 {
	shape := b.access.tensor.Shape
	if len(shape) < 2 || b.access.packed {
		return 0
	}
	bytes := shape[len(shape)-1] * b.access.tensor.DType.Bytes()
	power := 0.0
	for ; bytes > 0 && bytes%2 == 0; bytes /= 2 {
		power++
	}
	return power
}
