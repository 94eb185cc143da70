package features

import "math"

// column is one feature.
type column struct {
	name  string
	value func(a *analysis) float64
}

// log is the logarithm of a count or size to the base of two; 0 for none.
func log(v float64) float64 { return math.Log2(1 + max(0, v)) }

// ratio is the logarithm of a/b to the base of two, within ±40; 0 where one of them is 0.
func ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return 0
	}
	return min(max(math.Log2(a/b), -40), 40)
}

func share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// columns are all features, in order. docs/features.md says what each means.
var columns = join(machine, work, parts, details)

func join(lists ...[]column) []column {
	var all []column
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// ideal is the cycles that the result's arithmetic takes with all workers, without any loss.
func (a *analysis) ideal() float64 {
	lanes := float64(max(1, a.t.VectorBytes/4))
	return max(1, a.asked.flop) / (4 * lanes * float64(max(1, a.t.Threads)))
}

// machine describes the target.
var machine = []column{
	{"machine_lanes", func(a *analysis) float64 { return float64(a.t.VectorBytes) / 4 }},
	{"machine_registers", func(a *analysis) float64 { return float64(a.t.VectorRegisters) }},
	{"machine_threads", func(a *analysis) float64 { return float64(a.t.Threads) }},
	{"machine_l1", func(a *analysis) float64 { return log(float64(a.t.L1DataBytes)) }},
	{"machine_l2", func(a *analysis) float64 { return log(float64(a.t.L2Bytes)) }},
	{"machine_l3", func(a *analysis) float64 { return log(float64(a.t.L3Bytes)) }},
}

// work is what the workload asks for, and the analytic cost.
var work = []column{
	{"work_flop", func(a *analysis) float64 { return log(a.asked.flop) }},
	{"work_bytes", func(a *analysis) float64 { return log(a.asked.bytes) }},
	{"work_intensity", func(a *analysis) float64 { return ratio(a.asked.flop, a.asked.bytes) }},
	{"cost_cycles", func(a *analysis) float64 { return log(a.cycles) }},
	{"cost_loss", func(a *analysis) float64 { return ratio(a.cycles, a.ideal()) }},
}

// parts are sums over all statements.
var parts = []column{
	{"sum_statements", func(a *analysis) float64 { return float64(len(a.statements)) }},
	{"sum_regions", func(a *analysis) float64 { return a.total.regions }},
	{"sum_waste", func(a *analysis) float64 { return ratio(a.total.iterations, a.total.useful) }},
	{"sum_code", func(a *analysis) float64 { return log(a.total.code) }},
	{"sum_multiply_adds", func(a *analysis) float64 { return log(a.total.operations.multiplyAdds) }},
	{"sum_adds", func(a *analysis) float64 { return log(a.total.operations.adds) }},
	{"sum_divides", func(a *analysis) float64 { return log(a.total.operations.divides) }},
	{"sum_transcendentals", func(a *analysis) float64 { return log(a.total.operations.transcendentals) }},
	{"sum_integers", func(a *analysis) float64 { return log(a.total.operations.integers) }},
	{"sum_selects", func(a *analysis) float64 { return log(a.total.operations.selects) }},
	{"sum_casts", func(a *analysis) float64 { return log(a.total.operations.casts) }},
	{"sum_guards", func(a *analysis) float64 { return log(a.total.operations.guards) }},
	{"sum_moves", func(a *analysis) float64 { return log(a.total.moves) }},
	{"sum_vector_loads", func(a *analysis) float64 { return log(a.total.vectors) }},
	{"sum_scalar_loads", func(a *analysis) float64 { return log(a.total.scalars) }},
	{"sum_gathers", func(a *analysis) float64 { return log(a.total.gathers) }},
	{"sum_stores", func(a *analysis) float64 { return log(a.total.stores) }},
	{"sum_steps", func(a *analysis) float64 { return log(a.total.steps) }},
	{"sum_port_loss", func(a *analysis) float64 { return a.loss(a.total.spent.ports) }},
	{"sum_load_loss", func(a *analysis) float64 { return a.loss(a.total.spent.loads) }},
	{"sum_latency_loss", func(a *analysis) float64 { return a.loss(a.total.spent.latency) }},
	{"sum_busy_loss", func(a *analysis) float64 { return a.loss(a.total.spent.busy) }},
	{"sum_exit_loss", func(a *analysis) float64 { return a.loss(a.total.spent.exits) }},
	{"sum_wait_l1_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[0]) }},
	{"sum_wait_l2_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[1]) }},
	{"sum_wait_tlb_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[2]) }},
	{"sum_wait_l3_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[3]) }},
	{"sum_elapsed_loss", func(a *analysis) float64 { return ratio(a.total.elapsed, a.ideal()) }},
	{"sum_scratch", func(a *analysis) float64 { return log(a.total.scratch) }},
	{"sum_nearby", func(a *analysis) float64 { return log(a.total.nearby) }},
}

// loss is cycles of all workers together, as a ratio to the ideal ones.
func (a *analysis) loss(cycles float64) float64 {
	return ratio(cycles, a.ideal()*float64(max(1, a.t.Threads)))
}

// details are those of the heaviest statement.
var details = []column{
	{"main_lanes_used", func(a *analysis) float64 { return a.heaviest.inner.lanes / a.lanesOf(a.heaviest.nest.stage) }},
	{"main_accumulators", func(a *analysis) float64 { return a.heaviest.inner.accumulators }},
	{"main_registers", func(a *analysis) float64 {
		w := &a.heaviest.inner
		return (w.accumulators + min(w.vectors, w.scalars) + 1) / float64(max(1, a.t.VectorRegisters))
	}},
	{"main_vectors", func(a *analysis) float64 { return a.heaviest.inner.vectors }},
	{"main_scalars", func(a *analysis) float64 { return a.heaviest.inner.scalars }},
	{"main_gathers", func(a *analysis) float64 { return a.heaviest.inner.gathers }},
	{"main_operations", func(a *analysis) float64 { return log(a.heaviest.inner.operations) }},
	{"main_trips", func(a *analysis) float64 { return log(a.heaviest.inner.trips) }},
	{"main_chunks", func(a *analysis) float64 { return log(a.heaviest.spent.chunks) }},
	{"main_share", func(a *analysis) float64 { return a.heaviest.spent.share * float64(max(1, a.t.Threads)) }},
}
