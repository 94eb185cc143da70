package cost

import (
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// candidate is the source of the columns.
type candidate struct {
	*Analysis
	// main is the launch that takes longest, time its estimated time. A kernel without launches has an empty main.
	main *Launch
	time Cycles
	// cycles is the analytic cost of the candidate's space.
	cycles float64
	// flop and bytes are the minimum operations and data of the workload.
	flop, bytes float64
}

// describeAnalysed returns the candidate of a schedule. If it cannot be lowered, and is thus never built, it has no
// launches.
func describeAnalysed(s *schedule.Schedule, t *target.Target, cycles float64) *candidate {
	c := &candidate{
		Analysis: &Analysis{GPU: t.GPU}, main: &Launch{Blocks: 1, Tiles: 1, Max: 1, Begun: 1, Threads: 1, Stages: 1},
		cycles: cycles, flop: s.Workload.Flop(), bytes: float64(s.Workload.Bytes()),
	}
	if f, err := codegen.Outline(s); err == nil {
		c.Analysis = Analyse(f, t.GPU)
		if l := c.Heaviest(); l != nil {
			c.main = l
		}
	}
	c.time = c.Cycles(c.main)
	return c
}

func (c *candidate) processors() float64 { return float64(c.GPU.Multiprocessors) }

// ideal returns the minimum cycles of the workload on all multiprocessors: those of its arithmetic without tensor
// cores, or those of reading its bytes from global memory.
func (c *candidate) ideal() float64 {
	return max(1, c.flop/(2*Lanes), c.bytes/GlobalBytes) / c.processors()
}

// loss returns the cycles of a block's work in its whole launch, relative to the ideal ones.
func (c *candidate) loss(cycles float64) float64 {
	return costfeatures.Ratio(cycles*float64(c.main.Blocks)/c.processors(), c.ideal())
}

// effort returns how often a block does something in its whole launch, per 64th of the workload's requirements.
func (c *candidate) effort(times float64) float64 {
	return costfeatures.Log(64 * times * float64(c.main.Blocks) / max(1, c.flop, c.bytes))
}

// Features describes candidates for GPUs to a learned cost model. It implements backend.Features. The columns come
// from the analysis. Values with a wide range are logarithms. Values that depend on the GPU are relative to its
// capability, so that one model serves GPUs of one make. docs/features.md documents each column.
type Features struct{}

var _ backend.Features = Features{}

var set = costfeatures.NewSet("tilth-gpu-features-2", names(), costColumn)

func names() []string {
	list := make([]string, len(columns))
	for k, c := range columns {
		list[k] = c.name
	}
	return list
}

// Set implements backend.Features.
func (Features) Set() *costfeatures.Set { return set }

// Describe implements backend.Features.
func (Features) Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row {
	c := describeAnalysed(s, t, cycles)
	values := make([]float32, len(columns))
	for k, column := range columns {
		values[k] = costfeatures.Finite(column.value(c))
	}
	return costfeatures.Row{Set: set, Values: values}
}

// Prior implements backend.Features. There were no GPU measurements to train a model on.
func (Features) Prior(*target.Target) string { return "" }
