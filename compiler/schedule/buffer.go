package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Buffer describes the memory of a stage's results.
type Buffer struct {
	// Scope is the memory of a GPU.
	Scope Scope
	Layout
	Access
	// TMA is set if TMA copies of boxes that one thread issues fill the buffer, in place of the stage's loops.
	TMA bool
}

// Scope is the GPU memory of a stage's buffer.
type Scope uint8

// The scopes. By default, a stage computed by single threads lies in registers, one computed by blocks in shared
// memory, and one computed on its own in global memory.
const (
	ByPlace Scope = iota
	Shared
	Registers
)

// Layout is the place of rows, the elements along the last dimension, in a buffer. By default, one follows the other.
type Layout struct {
	// Gap is the number of elements after each row.
	Gap int64
	// Swizzled is set for the layout of warpgroup instructions.
	Swizzled bool
}

// Access is how loops access a buffer.
type Access struct {
	// Steps is the number of steps of the surrounding loop, including the current one, that a shared buffer is filled
	// ahead; 0 disables it.
	Steps int64
	// AheadBytes is the prefetch distance of reads; 0 disables prefetching.
	AheadBytes int64
	// Streamed is set for an output with non-temporal vector stores.
	Streamed bool
}

// Limits on a trace. A line that is fetched too early is evicted before its use.
const (
	maxGap           = 1 << 10
	maxPrefetchBytes = 64 << 10
	maxPipeline      = 8
)

// SetScope sets the memory of a stage that is computed inside another one. Registers of a stage with bound threads
// are distributed over them: each thread keeps the elements that it computes, and no other thread may read them.
// Lowering checks this.
func (s *Schedule) SetScope(stageID int, scope Scope) error {
	return s.change("scope", stageID, []int{int(scope)}, func(g *Stage) error {
		switch {
		case scope != Shared && scope != Registers:
			return fmt.Errorf("%d is not a scope", scope)
		case g.Consumer == nil:
			return fmt.Errorf("stage %d is computed on its own, in global memory", stageID)
		case g.Scope != ByPlace:
			return fmt.Errorf("stage %d already has one", stageID)
		}
		g.Scope = scope
		return nil
	})
}

// StorageAlign inserts a gap of the given number of elements after each row (the last dimension) of a stage's
// buffer. Rows at power-of-two distances map to the same few cache sets; a gap of one line spreads them. The
// primitive follows TVM's; traces call it skew.
func (s *Schedule) StorageAlign(stageID int, elements int64) error {
	return s.change("skew", stageID, []int{int(elements)}, func(g *Stage) error {
		switch {
		case g.IsOutput:
			return fmt.Errorf("stage %d is an output, whose layout is given", stageID)
		case g.Gap != 0:
			return fmt.Errorf("stage %d is already skewed", stageID)
		case g.Swizzled:
			return fmt.Errorf("stage %d is swizzled", stageID)
		case len(g.Axes) == 0 || elements < 1 || elements > maxGap:
			return fmt.Errorf("a gap of %d elements after rows of stage %d is not between 1 and %d", elements, stageID, maxGap)
		}
		g.Gap = elements
		return nil
	})
}

// Swizzle gives a stage's buffer in shared memory the matrix layout of warpgroup instructions: rows of the last
// dimension form panels of up to 128 bytes, in which 16-byte pieces are permuted, so that threads reading a column
// use different banks. Swizzle has no effect on buffers whose rows are not 32, 64 or a multiple of 128 bytes long,
// or whose number of rows is not a multiple of eight.
func (s *Schedule) Swizzle(stageID int) error {
	return s.change("swizzle", stageID, nil, func(g *Stage) error {
		switch {
		case g.Scope != Shared:
			return fmt.Errorf("stage %d is not in shared memory", stageID)
		case g.Swizzled:
			return fmt.Errorf("stage %d is already swizzled", stageID)
		case g.Gap != 0:
			return fmt.Errorf("stage %d has gaps after its rows", stageID)
		}
		g.Swizzled = true
		return nil
	})
}

// Stream stores an output with non-temporal stores, where whole vectors are aligned. An ordinary store first
// fetches the line that it partly changes, and leaves it in a cache in place of another one. Both are wasted if no
// cache holds the results until they are read.
func (s *Schedule) Stream(stageID int) error {
	return s.change("stream", stageID, nil, func(g *Stage) error {
		switch {
		case !g.IsOutput:
			return fmt.Errorf("stage %d is not an output", stageID)
		case g.Streamed:
			return fmt.Errorf("stage %d is already streamed", stageID)
		case g.Combiner != expr.None:
			return fmt.Errorf("stage %d is a reduction, which reads what it stored", stageID)
		case g.Tensor.Strides != nil:
			return fmt.Errorf("stage %d is a part of a larger tensor, which need not be aligned", stageID)
		case len(s.Consumers(g)) > 0:
			return fmt.Errorf("stage %d is read by another", stageID)
		}
		g.Streamed = true
		return nil
	})
}

// Prefetch prefetches a packed constant at the given distance whenever a vector of it is loaded. It helps if
// constants come from memory, since hardware prefetchers do not cross page boundaries. If loops read a part of the
// constant repeatedly, each repetition also fetches a share of the next part.
func (s *Schedule) Prefetch(constant int, bytes int64) error {
	switch {
	case s.Packs[constant] == nil:
		return fmt.Errorf("prefetch: constant %d is not packed", constant)
	case s.Prefetches[constant] != 0:
		return fmt.Errorf("prefetch: constant %d is already prefetched", constant)
	case bytes < 1 || bytes > maxPrefetchBytes:
		return fmt.Errorf("prefetch: distance of %d bytes is not between 1 and %d", bytes, maxPrefetchBytes)
	}
	s.Prefetches[constant] = bytes
	s.record("prefetch", constant, int(bytes))
	return nil
}

// Fetch prefetches the buffer between a stage and its consumers at the given distance whenever a vector of it is
// loaded. It helps if the buffer exceeds the first-level cache and is read in pieces, which hardware prefetchers
// follow late. If loops repeatedly read data computed from a part of a prefetched constant, each repetition also
// fetches a share of the next part.
func (s *Schedule) Fetch(stageID int, bytes int64) error {
	return s.change("fetch", stageID, []int{int(bytes)}, func(g *Stage) error {
		switch {
		case g.IsOutput:
			return fmt.Errorf("stage %d is an output, which has no buffer of its own", stageID)
		case g.AheadBytes != 0:
			return fmt.Errorf("stage %d is already fetched", stageID)
		case bytes < 1 || bytes > maxPrefetchBytes:
			return fmt.Errorf("distance of %d bytes is not between 1 and %d", bytes, maxPrefetchBytes)
		}
		g.AheadBytes = bytes
		return nil
	})
}

// Pipeline fills a shared buffer ahead of the loop that computes it, by asynchronous copies for the given number of
// steps including the current one. The stage must be a copy, or zero where a condition fails. Copies of less than 4
// bytes, such as single halves, are not made ahead.
func (s *Schedule) Pipeline(stageID int, steps int64) error {
	return s.change("pipeline", stageID, []int{int(steps)}, func(g *Stage) error {
		_, _, copies := g.Copy()
		switch {
		case steps < 2 || steps > maxPipeline:
			return fmt.Errorf("%d steps of stage %d are not between 2 and %d", steps, stageID, maxPipeline)
		case g.Scope != Shared:
			return fmt.Errorf("stage %d is not in shared memory", stageID)
		case g.Steps > 0:
			return fmt.Errorf("stage %d has one already", stageID)
		case !g.At.Reduce:
			return fmt.Errorf("stage %d is not computed in a loop over a reduction", stageID)
		case !copies:
			return fmt.Errorf("stage %d is not a copy", stageID)
		}
		g.Steps = steps
		return nil
	})
}

// TMACopy fills a swizzled, pipelined buffer by TMA copies of boxes that a single thread issues. The buffer must be a
// copy of a tensor that owns its global memory, starts at an argument's alignment, and has rows of multiples of 16
// bytes. The stage then has no loops.
func (s *Schedule) TMACopy(stageID int) error {
	return s.change("bulk", stageID, nil, func(g *Stage) error {
		switch {
		case g.TMA:
			return fmt.Errorf("stage %d is already copied as boxes", stageID)
		case g.Steps == 0 || !g.Swizzled:
			return fmt.Errorf("stage %d is not fetched ahead, or not swizzled", stageID)
		case len(g.Iters) != len(g.Axes) || slices.ContainsFunc(g.Iters, func(it *Iter) bool { return it.Kind != Serial }):
			return fmt.Errorf("stage %d has loops of its own", stageID)
		}
		_, _, err := s.Boxes(g)
		g.TMA = err == nil
		return err
	})
}
