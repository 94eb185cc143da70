package cost

import "github.com/tilth-dev/tilth/compiler/schedule"

// Sums are of all statements.
type Sums struct {
	// Iterations are those computed, Useful those that results take; Code is the instructions written out.
	Iterations, Useful, Code float64
	// Operations are instructions by kind; Moves are those of statements that compute nothing.
	Operations                        Operations
	Moves                             float64
	Vectors, Scalars, Gathers, Stores float64
	// Steps is how often loops go round.
	Steps float64
	// Cycles are the work of all workers together; they have no share and no chunks.
	Cycles Cycles
	// Elapsed is the time of all statements, each with its busiest worker; Regions is how many statements workers
	// divide.
	Elapsed, Regions float64
	// Inside is the cycles of statements that are computed in the nests of others.
	Inside float64
	// Scratch is the bytes of buffers that are no arguments, Nearby those of them that are computed in another
	// statement's nest.
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
	for _, it := range g.Leaves {
		if it.Kind == schedule.Parallel {
			return true
		}
	}
	return false
}
