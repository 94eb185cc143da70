package schedule

import "fmt"

// maxPrefetchBytes bounds the distance of a prefetch: further ahead, lines are evicted before they are used.
const maxPrefetchBytes = 64 << 10

// Prefetch fetches a packed constant a distance ahead of its use, whenever a vector of it is loaded. It helps where the
// constants come from memory: processors do not follow a stream from one page to the next by themselves. Where loops read a part of
// the constant again and again, each time a share of the next part is fetched, too.
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
