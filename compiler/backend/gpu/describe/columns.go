package describe

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
)

// column is one feature.
type column struct {
	name  string
	value func(c *candidate) float64
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

// columns are all features, in order.
var columns = join(hardware, work, launches, shape, losses, operations, traffic)

func join(lists ...[]column) []column {
	var all []column
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// hardware describes the card.
var hardware = []column{
	{"card_multiprocessors", func(c *candidate) float64 { return log(c.processors()) }},
	{"card_threads", func(c *candidate) float64 { return log(float64(c.GPU.MultiprocessorThreads)) }},
	{"card_registers", func(c *candidate) float64 { return log(float64(c.GPU.MultiprocessorRegisters)) }},
	{"card_shared", func(c *candidate) float64 { return log(float64(c.GPU.MultiprocessorSharedBytes)) }},
	{"card_l2", func(c *candidate) float64 { return log(float64(c.GPU.L2Bytes)) }},
}

// work is what the workload asks for, and the analytic cost.
var work = []column{
	{"work_flop", func(c *candidate) float64 { return log(c.flop) }},
	{"work_bytes", func(c *candidate) float64 { return log(c.bytes) }},
	{"work_intensity", func(c *candidate) float64 { return ratio(c.flop, c.bytes) }},
	{"work_l2", func(c *candidate) float64 { return ratio(c.bytes, float64(c.GPU.L2Bytes)) }},
	{costColumn, func(c *candidate) float64 { return log(c.cycles) }},
	{"cost_loss", func(c *candidate) float64 { return ratio(c.cycles, c.ideal()) }},
}

const costColumn = "cost_cycles"

// launches are sums over all of them.
var launches = []column{
	{"launches", func(c *candidate) float64 { return float64(len(c.Launches)) }},
	{"launches_loss", func(c *candidate) float64 { return ratio(c.Total(), c.ideal()) }},
	{"launches_cost", func(c *candidate) float64 { return ratio(c.Total(), c.cycles) }},
	{"main_share", func(c *candidate) float64 { return share(c.time.Total, c.Total()) }},
}

// shape is how the main launch lies on the card.
var shape = []column{
	{"main_blocks", func(c *candidate) float64 { return log(float64(c.main.Blocks)) }},
	{"main_threads", func(c *candidate) float64 { return log(float64(c.main.Threads)) }},
	{"main_idle", func(c *candidate) float64 { return 1 - share(float64(c.main.Threads), c.main.Warps()*32) }},
	{"main_waves", func(c *candidate) float64 { return ratio(c.time.Waves, 1) }},
	{"main_tail", func(c *candidate) float64 { return ratio(math.Ceil(c.time.Waves), c.time.Waves) }},
	{"main_residents", func(c *candidate) float64 { return log(c.time.Residents) }},
	{"main_occupancy", func(c *candidate) float64 {
		return min(1, share(c.time.Residents*c.main.Warps()*32, float64(c.GPU.MultiprocessorThreads)))
	}},
	{"main_registers", func(c *candidate) float64 {
		return min(4, share(float64(c.main.Registers), float64(c.GPU.ThreadRegisters)))
	}},
	{"main_shared", func(c *candidate) float64 { return share(float64(c.main.SharedBytes), float64(c.GPU.BlockSharedBytes)) }},
	{"main_by_threads", func(c *candidate) float64 { return log(float64(machine.ByThreads(c.GPU, c.main.Threads))) }},
	{"main_by_registers", func(c *candidate) float64 {
		return log(float64(machine.ByRegisters(c.GPU, c.main.Threads*c.main.Registers)))
	}},
	{"main_by_shared", func(c *candidate) float64 { return min(8, log(float64(machine.ByShared(c.GPU, c.main.SharedBytes)))) }},
	{"main_stages", func(c *candidate) float64 { return float64(c.main.Stages) }},
	{"main_steps", func(c *candidate) float64 { return log(c.main.Steps) }},
	{"main_step_bytes", func(c *candidate) float64 { return log(c.main.StepBytes) }},
	{"main_flight", func(c *candidate) float64 {
		underWay := c.time.Residents * c.main.StepBytes * float64(max(1, c.main.Stages-1))
		return ratio(underWay, machine.Latency*machine.GlobalBytes)
	}},
	{"main_code", func(c *candidate) float64 { return log(c.main.Code) }},
}

// losses are the estimated times of the main launch.
var losses = []column{
	{"loss_arithmetic", func(c *candidate) float64 { return c.loss(c.time.Arithmetic) }},
	{"loss_matrix", func(c *candidate) float64 { return c.loss(c.time.Matrix) }},
	{"loss_shared", func(c *candidate) float64 { return c.loss(c.time.Shared) }},
	{"loss_global", func(c *candidate) float64 { return c.loss(c.time.Global) }},
	{"loss_wait", func(c *candidate) float64 { return c.loss(c.time.Wait) }},
	{"loss_busiest", func(c *candidate) float64 { return c.loss(c.time.Busiest()) }},
}

// operations are those of the main launch.
var operations = []column{
	{"multiply_adds", func(c *candidate) float64 { return c.effort(c.main.Operations.MultiplyAdds) }},
	{"adds", func(c *candidate) float64 { return c.effort(c.main.Operations.Adds) }},
	{"divides", func(c *candidate) float64 { return c.effort(c.main.Operations.Divides) }},
	{"transcendentals", func(c *candidate) float64 { return c.effort(c.main.Operations.Transcendentals) }},
	{"integers", func(c *candidate) float64 { return c.effort(c.main.Operations.Integers) }},
	{"selects", func(c *candidate) float64 { return c.effort(c.main.Operations.Selects) }},
	{"casts", func(c *candidate) float64 { return c.effort(c.main.Operations.Casts) }},
	{"matrix", func(c *candidate) float64 { return c.effort(c.main.Matrix) }},
	{"matrix_bits", func(c *candidate) float64 { return c.main.MatrixBits }},
	{"copies", func(c *candidate) float64 { return c.effort(c.main.Copies) }},
	{"copies_asynchronous", func(c *candidate) float64 { return share(c.main.Asynchronous, c.main.Copies) }},
	{"accesses", func(c *candidate) float64 { return c.effort(c.main.Instructions()) }},
}

// traffic is what the main launch moves.
var traffic = []column{
	{"load_refill", func(c *candidate) float64 { return ratio(c.main.Global.Bytes*float64(c.main.Blocks), c.bytes) }},
	{"load_waste", func(c *candidate) float64 { return ratio(c.main.Global.Units*32, c.main.Global.Bytes) }},
	{"load_width", func(c *candidate) float64 { return ratio(c.main.Global.Bytes, c.main.Global.Requests*32) }},
	{"store_waste", func(c *candidate) float64 { return ratio(c.main.Stored.Units*32, c.main.Stored.Bytes) }},
	{"store_width", func(c *candidate) float64 { return ratio(c.main.Stored.Bytes, c.main.Stored.Requests*32) }},
	{"shared_conflicts", func(c *candidate) float64 {
		return ratio(c.main.Local.Units*128, max(c.main.Local.Bytes, c.main.Local.Requests*128))
	}},
	{"shared_width", func(c *candidate) float64 { return ratio(c.main.Local.Bytes, c.main.Local.Requests*32) }},
	{"shared_reuse", func(c *candidate) float64 {
		return ratio(c.main.Operations.MultiplyAdds+c.main.Matrix, c.main.Local.Requests*32)
	}},
	{"step_work", func(c *candidate) float64 {
		return ratio(c.main.Operations.MultiplyAdds+c.main.Matrix, c.main.Steps*c.main.StepBytes)
	}},
}
