package describe

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// cycles is where the time of a statement goes, in cycles of one core, as package machine models it.
type cycles struct {
	// ports are those that operations take, loads those that loads and stores take, latency those that results are
	// waited for, issue those that instructions take at all. They overlap: busy is the largest.
	ports, loads, latency, issue, busy float64
	// exits are for leaving loops, waits for filling each store.
	exits float64
	waits [maxStores]float64
	// share is the part of the work that the busiest worker does, chunks into how many pieces it is cut.
	share, chunks float64
}

// total is the time of the busiest worker.
func (c *cycles) total() float64 { return c.work() * c.share }

func (c *cycles) work() float64 {
	work := c.busy + c.exits
	for _, w := range c.waits {
		work += w
	}
	return work
}

// spend estimates the time of a statement.
func (a *analysis) spend(x *statement) cycles {
	w := &x.inner
	operations := w.operations * x.ops.slots()
	memory := w.loads() + w.stores
	spilled := a.spilled(x)
	var c cycles
	c.ports = w.steps * operations / machine.Arithmetic
	c.loads = w.steps * (memory + spilled) * machine.LoadSlot
	c.issue = w.steps * (operations + memory + 2) / machine.Issue
	if x.nest.stage.Combiner != expr.None {
		c.latency = w.steps * machine.ResultLatency * w.operations / max(1, w.accumulators)
	}
	c.busy = max(c.ports, c.loads, c.latency, c.issue)
	if w.trips > 4 {
		c.exits = w.steps / w.trips * machine.LoopExit
	}
	for s, store := range a.stores {
		c.waits[s] = x.trace.fills[s] * store.Cycles
	}
	c.chunks = a.chunks(x)
	workers := float64(machine.Workers(a.t))
	c.share = math.Ceil(c.chunks/workers) / c.chunks
	return c
}

// chunks is into how many pieces workers divide the nest that a statement belongs to.
func (a *analysis) chunks(x *statement) float64 {
	for x.consumer >= 0 {
		x = &a.statements[x.consumer]
	}
	for _, it := range x.nest.stage.Leaves {
		if it.Kind == schedule.Parallel {
			return max(1, x.nest.extent[it.ID])
		}
	}
	return 1
}
