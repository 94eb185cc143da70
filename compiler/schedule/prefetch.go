package schedule

import "fmt"

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
