package describe

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// sums are of all statements.
type sums struct {
	// iterations are those computed, useful those that results take; code is the instructions written out.
	iterations, useful, code float64
	// operations are instructions by kind; moves are those of statements that compute nothing.
	operations                        arithmetic
	moves                             float64
	vectors, scalars, gathers, stores float64
	// steps is how often loops go round.
	steps float64
	spent cycles
	// elapsed is the time of all statements, each with its busiest worker; regions is how many statements workers
	// divide.
	elapsed, regions float64
	// inside is the cycles of statements that are computed in the nests of others.
	inside float64
	// scratch is the bytes of buffers that are no arguments, nearby those of them that are computed in another
	// statement's nest.
	scratch, nearby float64
}

func (s *sums) add(x *statement) {
	w, g := &x.inner, x.nest.stage
	s.iterations += x.iterations()
	s.useful += x.useful()
	s.code += x.written()
	s.operations.add(x.ops, w.operations*w.steps)
	if x.ops.slots() == 0 {
		s.moves += w.operations * w.steps
	}
	s.vectors += w.vectors * w.steps
	s.scalars += w.scalars * w.steps
	s.gathers += w.gathers * w.steps
	s.stores += w.stores * w.steps
	s.steps += w.steps
	s.addCycles(&x.spent)
	s.elapsed += x.spent.total()
	if x.consumer >= 0 {
		s.inside += x.spent.work()
	}
	if x.consumer < 0 && hasParallel(g) {
		s.regions++
	}
	if bytes := product(x.nest.axes[:len(g.Axes)]) * float64(g.Tensor.DType.Bytes()); x.consumer >= 0 {
		s.nearby += bytes
	} else if !g.IsOutput {
		s.scratch += bytes
	}
}

func (s *sums) addCycles(c *cycles) {
	s.spent.ports += c.ports
	s.spent.loads += c.loads
	s.spent.latency += c.latency
	s.spent.issue += c.issue
	s.spent.busy += c.busy
	s.spent.exits += c.exits
	for k, w := range c.waits {
		s.spent.waits[k] += w
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

// constants are those that the kernel reads.
type constants struct {
	// bytes as they are read, given as the workload has them, packed how many of bytes are laid out anew.
	bytes, given, packed float64
	// prefetch is how many bytes ahead they are fetched.
	prefetch float64
}

func (a *analysis) constants() (k constants) {
	size := func(t *expr.Tensor) float64 { return float64(array.Elements(t.Shape) * t.DType.Bytes()) }
	for c, t := range a.s.Workload.Constants {
		k.given += size(t)
		if tr := a.s.Transforms[c]; tr != nil {
			t = tr.Tensor
		}
		k.bytes += size(t)
		if a.s.Packs[c] != nil {
			k.packed += size(t)
		}
		k.prefetch = max(k.prefetch, float64(a.s.Prefetches[c]))
	}
	return k
}
