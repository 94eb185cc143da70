package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
)

// column is one feature.
type column struct {
	name  string
	value func(c *candidate) float64
}

// columns lists all features in order.
var columns = slices.Concat(hardware, work, launches, shape, losses, operations, traffic)

// hardware describes the GPU.
var hardware = []column{
	{"card_multiprocessors", func(c *candidate) float64 { return costfeatures.Log(c.processors()) }},
	{"card_threads", func(c *candidate) float64 { return costfeatures.Log(float64(c.GPU.MultiprocessorThreads)) }},
	{"card_registers", func(c *candidate) float64 { return costfeatures.Log(float64(c.GPU.MultiprocessorRegisters)) }},
	{"card_shared", func(c *candidate) float64 { return costfeatures.Log(float64(c.GPU.MultiprocessorSharedBytes)) }},
	{"card_l2", func(c *candidate) float64 { return costfeatures.Log(float64(c.GPU.L2Bytes)) }},
}

// work describes the workload's requirements and the analytic cost.
var work = []column{
	{"work_flop", func(c *candidate) float64 { return costfeatures.Log(c.flop) }},
	{"work_bytes", func(c *candidate) float64 { return costfeatures.Log(c.bytes) }},
	{"work_intensity", func(c *candidate) float64 { return costfeatures.Ratio(c.flop, c.bytes) }},
	{"work_l2", func(c *candidate) float64 { return costfeatures.Ratio(c.bytes, float64(c.GPU.L2Bytes)) }},
	{costColumn, func(c *candidate) float64 { return costfeatures.Log(c.cycles) }},
	{"cost_loss", func(c *candidate) float64 { return costfeatures.Ratio(c.cycles, c.ideal()) }},
}

const costColumn = "cost_cycles"

// launches holds sums over all launches.
var launches = []column{
	{"launches", func(c *candidate) float64 { return float64(len(c.Launches)) }},
	{"launches_loss", func(c *candidate) float64 { return costfeatures.Ratio(c.Total(), c.ideal()) }},
	{"launches_cost", func(c *candidate) float64 { return costfeatures.Ratio(c.Total(), c.cycles) }},
	{"main_share", func(c *candidate) float64 { return costfeatures.Share(c.time.Total, c.Total()) }},
}

// shape describes how the main launch occupies the GPU.
var shape = []column{
	{"main_blocks", func(c *candidate) float64 { return costfeatures.Log(float64(c.main.Blocks)) }},
	{"main_threads", func(c *candidate) float64 { return costfeatures.Log(float64(c.main.Threads)) }},
	{"main_idle", func(c *candidate) float64 { return 1 - costfeatures.Share(float64(c.main.Threads), c.main.Warps()*32) }},
	{"main_waves", func(c *candidate) float64 { return costfeatures.Ratio(c.time.Waves, 1) }},
	{"main_tail", func(c *candidate) float64 { return costfeatures.Ratio(c.time.Tail, 1) }},
	{"main_tiles", func(c *candidate) float64 { return costfeatures.Ratio(float64(c.main.Tiles), float64(c.main.Blocks)) }},
	{"main_residents", func(c *candidate) float64 { return costfeatures.Log(c.time.Residents) }},
	{"main_occupancy", func(c *candidate) float64 {
		return min(1, costfeatures.Share(c.time.Residents*c.main.Warps()*32, float64(c.GPU.MultiprocessorThreads)))
	}},
	{"main_registers", func(c *candidate) float64 {
		return min(4, costfeatures.Share(float64(c.main.Registers), float64(c.GPU.ThreadRegisters)))
	}},
	{"main_shared", func(c *candidate) float64 {
		return costfeatures.Share(float64(c.main.SharedBytes), float64(c.GPU.BlockSharedBytes))
	}},
	{"main_by_threads", func(c *candidate) float64 { return costfeatures.Log(float64(ByThreads(c.GPU, c.main.Threads))) }},
	{"main_by_registers", func(c *candidate) float64 {
		return costfeatures.Log(float64(ByRegisters(c.GPU, c.main.Threads*c.main.Registers)))
	}},
	{"main_by_shared", func(c *candidate) float64 {
		return min(8, costfeatures.Log(float64(ByShared(c.GPU, c.main.SharedBytes))))
	}},
	{"main_stages", func(c *candidate) float64 { return float64(c.main.Stages) }},
	{"main_steps", func(c *candidate) float64 { return costfeatures.Log(c.main.Steps) }},
	{"main_step_bytes", func(c *candidate) float64 { return costfeatures.Log(c.main.StepBytes) }},
	{"main_flight", func(c *candidate) float64 {
		underWay := c.time.Residents * c.main.StepBytes * float64(max(1, c.main.Stages-1))
		return costfeatures.Ratio(underWay, Latency*GlobalBytes)
	}},
	{"main_code", func(c *candidate) float64 { return costfeatures.Log(c.main.Code) }},
}

// losses holds the estimated times of the main launch.
var losses = []column{
	{"loss_arithmetic", func(c *candidate) float64 { return c.loss(c.time.Arithmetic) }},
	{"loss_matrix", func(c *candidate) float64 { return c.loss(c.time.Matrix) }},
	{"loss_shared", func(c *candidate) float64 { return c.loss(c.time.Shared) }},
	{"loss_global", func(c *candidate) float64 { return c.loss(c.time.Global) }},
	{"loss_wait", func(c *candidate) float64 { return c.loss(c.time.Wait) }},
	{"loss_busiest", func(c *candidate) float64 { return c.loss(c.time.Busiest()) }},
}

// operations counts those of the main launch.
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
	{"copies_asynchronous", func(c *candidate) float64 { return costfeatures.Share(c.main.Asynchronous, c.main.Copies) }},
	{"accesses", func(c *candidate) float64 { return c.effort(c.main.Instructions()) }},
}

// traffic describes the data moved by the main launch.
var traffic = []column{
	{"load_refill", func(c *candidate) float64 {
		return costfeatures.Ratio(c.main.Global.Bytes*float64(c.main.Blocks), c.bytes)
	}},
	{"load_waste", func(c *candidate) float64 { return costfeatures.Ratio(c.main.Global.Units*32, c.main.Global.Bytes) }},
	{"load_width", func(c *candidate) float64 { return costfeatures.Ratio(c.main.Global.Bytes, c.main.Global.Requests*32) }},
	{"store_waste", func(c *candidate) float64 { return costfeatures.Ratio(c.main.Stored.Units*32, c.main.Stored.Bytes) }},
	{"store_width", func(c *candidate) float64 { return costfeatures.Ratio(c.main.Stored.Bytes, c.main.Stored.Requests*32) }},
	{"shared_conflicts", func(c *candidate) float64 {
		return costfeatures.Ratio(c.main.Local.Units*128, max(c.main.Local.Bytes, c.main.Local.Requests*128))
	}},
	{"shared_width", func(c *candidate) float64 { return costfeatures.Ratio(c.main.Local.Bytes, c.main.Local.Requests*32) }},
	{"shared_reuse", func(c *candidate) float64 {
		return costfeatures.Ratio(c.main.Operations.MultiplyAdds+c.main.Matrix, c.main.Local.Requests*32)
	}},
	{"step_work", func(c *candidate) float64 {
		return costfeatures.Ratio(c.main.Operations.MultiplyAdds+c.main.Matrix, c.main.Steps*c.main.StepBytes)
	}},
}
