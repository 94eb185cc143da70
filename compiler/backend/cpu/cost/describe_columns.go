package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
)

// column is one feature.
type column struct {
	name  string
	value func(a *candidate) float64
}

// columns lists all features in order. docs/features.md documents each.
var columns = slices.Concat(hardware, work, parts, shares, details, curve(), loops(), tensors())

// ideal returns the minimum cycles of the workload for the busiest worker: those of its arithmetic with whole
// vectors, or those that transfer its bytes from the last-level cache.
func (a *candidate) ideal() float64 {
	return max(1, a.asked.flop/a.flopCycle(), a.asked.bytes/microarch.BytesCycle) / a.workers()
}

// flopCycle returns the operations per cycle of a core: two vector multiply-adds.
func (a *candidate) flopCycle() float64 {
	return 2 * microarch.Arithmetic * float64(max(1, a.Target.CPU.VectorBytes/4))
}

func (a *candidate) workers() float64 { return float64(max(1, a.Target.CPU.Threads)) }

// hardware describes the target.
var hardware = []column{
	{"machine_lanes", func(a *candidate) float64 { return float64(a.Target.CPU.VectorBytes) / 4 }},
	{"machine_registers", func(a *candidate) float64 { return float64(a.Target.CPU.VectorRegisters) }},
	{"machine_threads", func(a *candidate) float64 { return float64(a.Target.CPU.Threads) }},
	{"machine_l1", func(a *candidate) float64 { return costfeatures.Log(float64(a.Target.CPU.L1DataBytes)) }},
	{"machine_l2", func(a *candidate) float64 { return costfeatures.Log(float64(a.Target.CPU.L2Bytes)) }},
	{"machine_l3", func(a *candidate) float64 { return costfeatures.Log(float64(a.Target.CPU.L3Bytes)) }},
}

// work describes the workload's requirements and the analytic cost.
var work = []column{
	{"work_flop", func(a *candidate) float64 { return costfeatures.Log(a.asked.flop) }},
	{"work_bytes", func(a *candidate) float64 { return costfeatures.Log(a.asked.bytes) }},
	{"work_intensity", func(a *candidate) float64 { return costfeatures.Ratio(a.asked.flop, a.asked.bytes) }},
	{"work_bound", func(a *candidate) float64 {
		return costfeatures.Ratio(a.asked.flop/a.flopCycle(), a.asked.bytes/microarch.BytesCycle)
	}},
	{"cost_cycles", func(a *candidate) float64 { return costfeatures.Log(a.cycles) }},
	{"cost_loss", func(a *candidate) float64 { return costfeatures.Ratio(a.cycles, a.ideal()) }},
}

// parts holds sums over all statements.
var parts = []column{
	{"sum_statements", func(a *candidate) float64 { return float64(len(a.Statements)) }},
	{"sum_regions", func(a *candidate) float64 { return a.Total.Regions }},
	{"sum_waste", func(a *candidate) float64 { return costfeatures.Ratio(a.Total.Iterations, a.Total.Useful) }},
	{"sum_code", func(a *candidate) float64 { return costfeatures.Log(a.Total.Code) }},
	{"sum_multiply_adds", func(a *candidate) float64 { return a.effort(a.Total.Operations.MultiplyAdds) }},
	{"sum_adds", func(a *candidate) float64 { return a.effort(a.Total.Operations.Adds) }},
	{"sum_divides", func(a *candidate) float64 { return a.effort(a.Total.Operations.Divides) }},
	{"sum_transcendentals", func(a *candidate) float64 { return a.effort(a.Total.Operations.Transcendentals) }},
	{"sum_integers", func(a *candidate) float64 { return a.effort(a.Total.Operations.Integers) }},
	{"sum_selects", func(a *candidate) float64 { return a.effort(a.Total.Operations.Selects) }},
	{"sum_casts", func(a *candidate) float64 { return a.effort(a.Total.Operations.Casts) }},
	{"sum_guards", func(a *candidate) float64 { return a.effort(a.Total.Operations.Guards) }},
	{"sum_moves", func(a *candidate) float64 { return a.effort(a.Total.Moves) }},
	{"sum_vector_loads", func(a *candidate) float64 { return a.effort(a.Total.Vectors) }},
	{"sum_scalar_loads", func(a *candidate) float64 { return a.effort(a.Total.Scalars) }},
	{"sum_gathers", func(a *candidate) float64 { return a.effort(a.Total.Gathers) }},
	{"sum_stores", func(a *candidate) float64 { return a.effort(a.Total.Stores) }},
	{"sum_steps", func(a *candidate) float64 { return a.effort(a.Total.Steps) }},
	{"sum_port_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Ports) }},
	{"sum_load_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Loads) }},
	{"sum_latency_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Latency) }},
	{"sum_issue_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Issue) }},
	{"sum_busy_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Busy) }},
	{"sum_exit_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Exits) }},
	{"sum_wait_l1_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Waits[0]) }},
	{"sum_wait_l2_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Waits[1]) }},
	{"sum_wait_tlb_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Waits[2]) }},
	{"sum_wait_l3_loss", func(a *candidate) float64 { return a.loss(a.Total.Cycles.Waits[3]) }},
	{"sum_cold_loss", func(a *candidate) float64 {
		return a.loss(a.Constants.Bytes / float64(microarch.Line(a.Target)) * microarch.ColdLine(a.Target))
	}},
	{"sum_elapsed_loss", func(a *candidate) float64 { return costfeatures.Ratio(a.Total.Elapsed, a.ideal()) }},
	{"sum_elapsed_cost", func(a *candidate) float64 { return costfeatures.Ratio(a.Total.Elapsed, a.cycles) }},
	{"sum_scratch", func(a *candidate) float64 { return costfeatures.Ratio(a.Total.Scratch, float64(a.Target.CPU.L2Bytes)) }},
	{"sum_nearby", func(a *candidate) float64 {
		return costfeatures.Ratio(a.Total.Nearby, float64(a.Target.CPU.L1DataBytes))
	}},
	{"constant_bytes", func(a *candidate) float64 { return costfeatures.Log(a.Constants.Bytes) }},
	{"constant_growth", func(a *candidate) float64 { return costfeatures.Ratio(a.Constants.Bytes, a.Constants.Given) }},
	{"constant_packed", func(a *candidate) float64 { return costfeatures.Share(a.Constants.Packed, a.Constants.Bytes) }},
	{"constant_prefetch", func(a *candidate) float64 { return costfeatures.Log(a.Constants.Prefetch) }},
}

// shares holds fractions of the time.
var shares = []column{
	{"share_main", func(a *candidate) float64 { return costfeatures.Share(a.Heaviest.Cycles.Total(), a.Total.Elapsed) }},
	{"share_busy", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Busy, a.Total.Cycles.Work()) }},
	{"share_exits", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Exits, a.Total.Cycles.Work()) }},
	{"share_wait_l1", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Waits[0], a.Total.Cycles.Work()) }},
	{"share_wait_l2", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Waits[1], a.Total.Cycles.Work()) }},
	{"share_wait_tlb", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Waits[2], a.Total.Cycles.Work()) }},
	{"share_wait_l3", func(a *candidate) float64 { return costfeatures.Share(a.Total.Cycles.Waits[3], a.Total.Cycles.Work()) }},
	{"share_inside", func(a *candidate) float64 { return costfeatures.Share(a.Total.Inside, a.Total.Cycles.Work()) }},
}

// effort returns instructions per vector of operations that the workload requires.
func (a *candidate) effort(instructions float64) float64 {
	return costfeatures.Log(64 * instructions * a.flopCycle() / 2 / max(1, a.asked.flop, a.asked.bytes))
}

// loss returns the cycles of all workers together, relative to the ideal ones.
func (a *candidate) loss(cycles float64) float64 {
	return costfeatures.Ratio(cycles, a.ideal()*a.workers())
}
