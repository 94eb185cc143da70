package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Scope is the GPU memory of a stage's buffer.
type Scope uint8

// The scopes. By default, a stage computed by single threads lies in registers, one computed by blocks in shared
// memory, and one computed on its own in global memory.
const (
	ByPlace Scope = iota
	Shared
	Registers
)

// SetScope sets the memory of a stage that is computed inside another one. Registers of a stage with bound threads
// are distributed over them: each thread keeps the elements that it computes, and no other thread may read them.
// Lowering checks this.
func (s *Schedule) SetScope(stageID int, scope Scope) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("scope: %w", err)
	case scope != Shared && scope != Registers:
		return fmt.Errorf("scope: %d is not a scope", scope)
	case g.Consumer == nil:
		return fmt.Errorf("scope: stage %d is computed on its own, in global memory", stageID)
	case g.Scope != ByPlace:
		return fmt.Errorf("scope: stage %d already has one", stageID)
	}
	g.Scope = scope
	s.record("scope", stageID, int(scope))
	return nil
}

// maxAlignGap limits the gap between rows, in elements.
const maxAlignGap = 1 << 10

// StorageAlign inserts a gap of the given number of elements after each row (the last dimension) of a stage's
// buffer. Rows at power-of-two distances map to the same few cache sets; a gap of one line spreads them. The
// primitive follows TVM's; traces call it skew.
func (s *Schedule) StorageAlign(stageID int, elements int64) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("skew: %w", err)
	case g.IsOutput:
		return fmt.Errorf("skew: stage %d is an output, whose layout is given", stageID)
	case g.StorageAlign != 0:
		return fmt.Errorf("skew: stage %d is already skewed", stageID)
	case g.Swizzled:
		return fmt.Errorf("skew: stage %d is swizzled", stageID)
	case len(g.Axes) == 0 || elements < 1 || elements > maxAlignGap:
		return fmt.Errorf("skew: a gap of %d elements after rows of stage %d is not between 1 and %d", elements, stageID, maxAlignGap)
	}
	g.StorageAlign = elements
	s.record("skew", stageID, int(elements))
	return nil
}

// Swizzle gives a stage's buffer in shared memory the matrix layout of warpgroup instructions: rows of the last
// dimension form panels of up to 128 bytes, in which 16-byte pieces are permuted, so that threads reading a column
// use different banks. Swizzle has no effect on buffers whose rows are not 32, 64 or a multiple of 128 bytes long,
// or whose number of rows is not a multiple of eight.
func (s *Schedule) Swizzle(stageID int) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("swizzle: %w", err)
	case g.Scope != Shared:
		return fmt.Errorf("swizzle: stage %d is not in shared memory", stageID)
	case g.Swizzled:
		return fmt.Errorf("swizzle: stage %d is already swizzled", stageID)
	case g.StorageAlign != 0:
		return fmt.Errorf("swizzle: stage %d has gaps after its rows", stageID)
	}
	g.Swizzled = true
	s.record("swizzle", stageID)
	return nil
}

// Stream stores an output with non-temporal stores, where whole vectors are aligned. An ordinary store first
// fetches the line that it partly changes, and leaves it in a cache in place of another one. Both are wasted if no
// cache holds the results until they are read.
func (s *Schedule) Stream(stageID int) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("stream: %w", err)
	case !g.IsOutput:
		return fmt.Errorf("stream: stage %d is not an output", stageID)
	case g.Streamed:
		return fmt.Errorf("stream: stage %d is already streamed", stageID)
	case g.Combiner != expr.None:
		return fmt.Errorf("stream: stage %d is a reduction, which reads what it stored", stageID)
	case g.Tensor.Strides != nil:
		return fmt.Errorf("stream: stage %d is a part of a larger tensor, which need not be aligned", stageID)
	case len(s.Consumers(g)) > 0:
		return fmt.Errorf("stream: stage %d is read by another", stageID)
	}
	g.Streamed = true
	s.record("stream", stageID)
	return nil
}

// maxPrefetchBytes limits the distance of a prefetch: lines fetched earlier are evicted before their use.
const maxPrefetchBytes = 64 << 10

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
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("fetch: %w", err)
	case g.IsOutput:
		return fmt.Errorf("fetch: stage %d is an output, which has no buffer of its own", stageID)
	case g.FetchBytes != 0:
		return fmt.Errorf("fetch: stage %d is already fetched", stageID)
	case bytes < 1 || bytes > maxPrefetchBytes:
		return fmt.Errorf("fetch: distance of %d bytes is not between 1 and %d", bytes, maxPrefetchBytes)
	}
	g.FetchBytes = bytes
	s.record("fetch", stageID, int(bytes))
	return nil
}
