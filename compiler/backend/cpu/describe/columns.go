package describe

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"math"
)

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
var columns = join(hardware, work, parts, shares, details, curve(), loops(), tensors())

func join(lists ...[]column) []column {
	var all []column
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// ideal is the cycles that the workload takes at least, of the busiest worker: those of its arithmetic with whole
// vectors, or those in which its bytes come from the last cache.
func (a *analysis) ideal() float64 {
	return max(1, a.asked.flop/a.flopCycle(), a.asked.bytes/machine.BytesCycle) / a.workers()
}

// flopCycle is the operations that a core does in a cycle: two multiplications and additions of vectors.
func (a *analysis) flopCycle() float64 {
	return 2 * machine.Arithmetic * float64(max(1, a.t.CPU.VectorBytes/4))
}

func (a *analysis) workers() float64 { return float64(max(1, a.t.CPU.Threads)) }

// hardware describes the target.
var hardware = []column{
	{"machine_lanes", func(a *analysis) float64 { return float64(a.t.CPU.VectorBytes) / 4 }},
	{"machine_registers", func(a *analysis) float64 { return float64(a.t.CPU.VectorRegisters) }},
	{"machine_threads", func(a *analysis) float64 { return float64(a.t.CPU.Threads) }},
	{"machine_l1", func(a *analysis) float64 { return log(float64(a.t.CPU.L1DataBytes)) }},
	{"machine_l2", func(a *analysis) float64 { return log(float64(a.t.CPU.L2Bytes)) }},
	{"machine_l3", func(a *analysis) float64 { return log(float64(a.t.CPU.L3Bytes)) }},
}

// work is what the workload asks for, and the analytic cost.
var work = []column{
	{"work_flop", func(a *analysis) float64 { return log(a.asked.flop) }},
	{"work_bytes", func(a *analysis) float64 { return log(a.asked.bytes) }},
	{"work_intensity", func(a *analysis) float64 { return ratio(a.asked.flop, a.asked.bytes) }},
	{"work_bound", func(a *analysis) float64 { return ratio(a.asked.flop/a.flopCycle(), a.asked.bytes/machine.BytesCycle) }},
	{"cost_cycles", func(a *analysis) float64 { return log(a.cycles) }},
	{"cost_loss", func(a *analysis) float64 { return ratio(a.cycles, a.ideal()) }},
}

// parts are sums over all statements.
var parts = []column{
	{"sum_statements", func(a *analysis) float64 { return float64(len(a.statements)) }},
	{"sum_regions", func(a *analysis) float64 { return a.total.regions }},
	{"sum_waste", func(a *analysis) float64 { return ratio(a.total.iterations, a.total.useful) }},
	{"sum_code", func(a *analysis) float64 { return log(a.total.code) }},
	{"sum_multiply_adds", func(a *analysis) float64 { return a.effort(a.total.operations.multiplyAdds) }},
	{"sum_adds", func(a *analysis) float64 { return a.effort(a.total.operations.adds) }},
	{"sum_divides", func(a *analysis) float64 { return a.effort(a.total.operations.divides) }},
	{"sum_transcendentals", func(a *analysis) float64 { return a.effort(a.total.operations.transcendentals) }},
	{"sum_integers", func(a *analysis) float64 { return a.effort(a.total.operations.integers) }},
	{"sum_selects", func(a *analysis) float64 { return a.effort(a.total.operations.selects) }},
	{"sum_casts", func(a *analysis) float64 { return a.effort(a.total.operations.casts) }},
	{"sum_guards", func(a *analysis) float64 { return a.effort(a.total.operations.guards) }},
	{"sum_moves", func(a *analysis) float64 { return a.effort(a.total.moves) }},
	{"sum_vector_loads", func(a *analysis) float64 { return a.effort(a.total.vectors) }},
	{"sum_scalar_loads", func(a *analysis) float64 { return a.effort(a.total.scalars) }},
	{"sum_gathers", func(a *analysis) float64 { return a.effort(a.total.gathers) }},
	{"sum_stores", func(a *analysis) float64 { return a.effort(a.total.stores) }},
	{"sum_steps", func(a *analysis) float64 { return a.effort(a.total.steps) }},
	{"sum_port_loss", func(a *analysis) float64 { return a.loss(a.total.spent.ports) }},
	{"sum_load_loss", func(a *analysis) float64 { return a.loss(a.total.spent.loads) }},
	{"sum_latency_loss", func(a *analysis) float64 { return a.loss(a.total.spent.latency) }},
	{"sum_issue_loss", func(a *analysis) float64 { return a.loss(a.total.spent.issue) }},
	{"sum_busy_loss", func(a *analysis) float64 { return a.loss(a.total.spent.busy) }},
	{"sum_exit_loss", func(a *analysis) float64 { return a.loss(a.total.spent.exits) }},
	{"sum_wait_l1_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[0]) }},
	{"sum_wait_l2_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[1]) }},
	{"sum_wait_tlb_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[2]) }},
	{"sum_wait_l3_loss", func(a *analysis) float64 { return a.loss(a.total.spent.waits[3]) }},
	{"sum_cold_loss", func(a *analysis) float64 { return a.loss(a.constant.bytes / float64(a.line()) * machine.ColdLine) }},
	{"sum_elapsed_loss", func(a *analysis) float64 { return ratio(a.total.elapsed, a.ideal()) }},
	{"sum_elapsed_cost", func(a *analysis) float64 { return ratio(a.total.elapsed, a.cycles) }},
	{"sum_scratch", func(a *analysis) float64 { return ratio(a.total.scratch, float64(a.t.CPU.L2Bytes)) }},
	{"sum_nearby", func(a *analysis) float64 { return ratio(a.total.nearby, float64(a.t.CPU.L1DataBytes)) }},
	{"constant_bytes", func(a *analysis) float64 { return log(a.constant.bytes) }},
	{"constant_growth", func(a *analysis) float64 { return ratio(a.constant.bytes, a.constant.given) }},
	{"constant_packed", func(a *analysis) float64 { return share(a.constant.packed, a.constant.bytes) }},
	{"constant_prefetch", func(a *analysis) float64 { return log(a.constant.prefetch) }},
}

// shares are parts of the time.
var shares = []column{
	{"share_main", func(a *analysis) float64 { return share(a.heaviest.spent.total(), a.total.elapsed) }},
	{"share_busy", func(a *analysis) float64 { return share(a.total.spent.busy, a.total.spent.work()) }},
	{"share_exits", func(a *analysis) float64 { return share(a.total.spent.exits, a.total.spent.work()) }},
	{"share_wait_l1", func(a *analysis) float64 { return share(a.total.spent.waits[0], a.total.spent.work()) }},
	{"share_wait_l2", func(a *analysis) float64 { return share(a.total.spent.waits[1], a.total.spent.work()) }},
	{"share_wait_tlb", func(a *analysis) float64 { return share(a.total.spent.waits[2], a.total.spent.work()) }},
	{"share_wait_l3", func(a *analysis) float64 { return share(a.total.spent.waits[3], a.total.spent.work()) }},
	{"share_inside", func(a *analysis) float64 { return share(a.total.inside, a.total.spent.work()) }},
}

// effort is instructions for each vector of operations that the workload asks for.
func (a *analysis) effort(instructions float64) float64 {
	return log(64 * instructions * a.flopCycle() / 2 / max(1, a.asked.flop, a.asked.bytes))
}

// loss is cycles of all workers together, as a ratio to the ideal ones.
func (a *analysis) loss(cycles float64) float64 {
	return ratio(cycles, a.ideal()*a.workers())
}
