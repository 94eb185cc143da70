package cost

import (
	"slices"

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
	c.Share = microarch.Share(a.Target, c.Chunks)
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

// Sums holds sums over all statements.
type Sums struct {
	// Iterations counts the computed iterations, Useful those that the results require; Code counts printed
	// instructions.
	Iterations, Useful, Code float64
	// Operations counts instructions by kind; Moves counts those of statements that only copy.
	Operations                        Operations
	Moves                             float64
	Vectors, Scalars, Gathers, Stores float64
	// Steps counts loop iterations.
	Steps float64
	// Cycles is the work of all workers together, without a share or chunks.
	Cycles Cycles
	// Elapsed is the time of all statements, each with its busiest worker. Regions is the number of parallel
	// statements.
	Elapsed, Regions float64
	// Inside is the cycles of statements computed in the nests of others.
	Inside float64
	// Scratch is the size in bytes of buffers other than arguments, Nearby the part computed in another statement's
	// nest.
	Scratch, Nearby float64
}

func (s *Sums) add(x *Statement) {
	w, g := &x.Tile, x.Nest.Stage
	s.Iterations += x.Iterations()
	s.Useful += x.Useful()
	s.Code += x.Tile.Operations*x.Operations.Slots() + x.Tile.Loads() + x.Tile.Stores
	s.Operations.add(x.Operations, w.Operations*w.Steps)
	if x.Operations.Slots() == 0 {
		s.Moves += w.Operations * w.Steps
	}
	s.Vectors += w.Vectors * w.Steps
	s.Scalars += w.Scalars * w.Steps
	s.Gathers += w.Gathers * w.Steps
	s.Stores += w.Stores * w.Steps
	s.Steps += w.Steps
	s.addCycles(&x.Cycles)
	s.Elapsed += x.Cycles.Total()
	if x.Consumer >= 0 {
		s.Inside += x.Cycles.Work()
	}
	if x.Consumer < 0 && slices.ContainsFunc(g.Leaves, func(it *schedule.Iter) bool { return it.Kind == schedule.Parallel }) {
		s.Regions++
	}
	if bytes := product(x.Nest.Axes[:len(g.Axes)]) * float64(g.Tensor.DType.Bytes()); x.Consumer >= 0 {
		s.Nearby += bytes
	} else if !g.IsOutput {
		s.Scratch += bytes
	}
}

func (s *Sums) addCycles(c *Cycles) {
	s.Cycles.Ports += c.Ports
	s.Cycles.Loads += c.Loads
	s.Cycles.Latency += c.Latency
	s.Cycles.Issue += c.Issue
	s.Cycles.Busy += c.Busy
	s.Cycles.Exits += c.Exits
	for k, w := range c.Waits {
		s.Cycles.Waits[k] += w
	}
}
