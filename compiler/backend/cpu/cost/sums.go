package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

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
	s.Code += x.written()
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
	if x.Consumer < 0 && hasParallel(g) {
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

func hasParallel(g *schedule.Stage) bool {
	return slices.ContainsFunc(g.Leaves, func(it *schedule.Iter) bool { return it.Kind == schedule.Parallel })
}
