package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Cycles breaks down the time of a statement, in cycles of one core, by the model of package machine.
type Cycles struct {
	// Ports are the cycles of operations, Loads those of loads and stores, Latency those of waiting for results,
	// Issue those of issuing all instructions. They overlap: Busy is the maximum.
	Ports, Loads, Latency, Issue, Busy float64
	// Exits are the cycles of leaving loops, Waits those of filling each cache.
	Exits float64
	Waits [maxLevels]float64
	// Share is the busiest worker's fraction of the work, Chunks the number of pieces that it is divided into.
	Share, Chunks float64
}

// Total returns the time of the busiest worker.
func (c *Cycles) Total() float64 { return c.Work() * c.Share }

// Work returns the time of all workers together.
func (c *Cycles) Work() float64 {
	work := c.Busy + c.Exits
	for _, w := range c.Waits {
		work += w
	}
	return work
}

// spend estimates the time of a statement.
func (a *Analysis) spend(x *Statement) Cycles {
	w := &x.Tile
	operations := w.Operations * x.Operations.Slots()
	memory := w.Loads() + w.Stores
	spilled := a.spilled(x)
	var c Cycles
	c.Ports = w.Steps * operations / microarch.Arithmetic
	c.Loads = w.Steps * (memory + spilled) * microarch.LoadSlot
	c.Issue = w.Steps * (operations + memory + 2) / microarch.Issue
	if x.Nest.Stage.Combiner != expr.None {
		c.Latency = w.Steps * microarch.ResultLatency * w.Operations / max(1, w.Accumulators)
	}
	if w.Matrices {
		c.Ports = w.Steps * w.Operations * microarch.TileProduct
		c.Loads = w.Steps * memory * microarch.TileLoad
		c.Latency = w.Steps * microarch.TileLatency
	}
	c.Busy = max(c.Ports, c.Loads, c.Latency, c.Issue)
	if w.Trips > 4 {
		c.Exits = w.Steps / w.Trips * microarch.LoopExit
	}
	for s, store := range a.Levels {
		c.Waits[s] = x.Traffic.Fills[s] * store.Cycles
	}
	c.Chunks = a.chunks(x)
	workers := float64(microarch.Workers(a.Target))
	c.Share = math.Ceil(c.Chunks/workers) / c.Chunks
	return c
}

// chunks returns how many pieces the workers divide a statement's nest into.
func (a *Analysis) chunks(x *Statement) float64 {
	for x.Consumer >= 0 {
		x = &a.Statements[x.Consumer]
	}
	for _, it := range x.Nest.Stage.Leaves {
		if it.Kind == schedule.Parallel {
			return max(1, x.Nest.extent[it.ID])
		}
	}
	return 1
}
