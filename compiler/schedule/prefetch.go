package schedule

import "fmt"

// maxPrefetchBytes bounds the distance of a prefetch: further ahead, lines are evicted before they are used.
const maxPrefetchBytes = 64 << 10

// Prefetch fetches a packed constant a distance ahead of its use, whenever a vector of it is loaded. It helps where
// the constants come from memory: processors do not follow a stream from one page to the next by themselves. Where
// loops read a part of the constant again and again, each time a share of the next part is fetched, too.
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

// Fetch fetches the buffer that holds a stage between its producer and its consumers a distance ahead of its use,
// whenever a vector of it is loaded. It helps where the buffer is larger than the first cache and is read in pieces,
// which processors are late to follow. Where loops read again and again what was computed from a part of a prefetched
// constant, each time a share of the part behind it is fetched, too.
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
