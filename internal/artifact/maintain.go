package artifact

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// sweepEvery is how often expired files are dropped, and drops are logged.
const sweepEvery = time.Minute

// Run maintains a store until ctx ends: it drops expired files and verifies each stored artifact once per ScrubEvery,
// at no more than ScrubBytes per second.
func (s *Store) Run(ctx context.Context) {
	var scrub sync.WaitGroup
	defer scrub.Wait()
	if s.ScrubBytes > 0 {
		scrub.Go(func() { s.scrub(ctx) })
	}
	if s.shared {
		scrub.Go(func() { s.maintainShared(ctx) })
	}
	logged := newStats().Dropped
	for {
		s.sweep()
		logged = s.logDropped(logged)
		if retry.Sleep(ctx, sweepEvery) != nil {
			return
		}
	}
}

// sweep drops files that were not used, and uploads that were not resumed, for too long.
func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	s.forgetOthers()
	for _, a := range s.owners {
		for f := front(&a.artifacts); f != nil && s.Keep > 0 && now.Sub(f.used) >= s.Keep && s.mayGo(f); f = front(&a.artifacts) {
			s.drop(f, droppedUnused)
		}
		for f := front(&a.parts); f != nil && now.Sub(f.used) >= s.KeepParts; f = front(&a.parts) {
			s.drop(f, droppedPart)
		}
	}
}

// logDropped logs the drops since the counts in before, and returns the current counts.
func (s *Store) logDropped(before map[string]int64) map[string]int64 {
	now := s.Stats().Dropped
	var said []any
	for _, why := range []string{droppedForRoom, droppedUnused, droppedPart, droppedDamaged} {
		if n := now[why] - before[why]; n > 0 {
			said = append(said, why, n)
		}
	}
	if len(said) > 0 {
		s.Logger.Info("artifacts dropped", said...)
	}
	return now
}

// scrub verifies stored artifacts, the least recently verified first.
func (s *Store) scrub(ctx context.Context) {
	for ctx.Err() == nil {
		for _, f := range s.due() {
			err := s.verify(ctx, f, func(bytes int) error {
				return retry.Sleep(ctx, time.Duration(float64(bytes)/float64(s.ScrubBytes)*float64(time.Second)))
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.Logger.Warn("artifact not checked", "artifact", f.digest, "error", err)
			}
		}
		_ = retry.Sleep(ctx, sweepEvery)
	}
}

// due returns the artifacts that have to be verified now.
func (s *Store) due() (files []*file) {
	type due struct {
		*file
		checked time.Time
	}
	var all []due
	s.mu.Lock()
	before := s.Now().Add(-s.ScrubEvery)
	for _, f := range s.files {
		if !f.checked.After(before) && s.ownsPart(f.digest) {
			all = append(all, due{f, f.checked})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b due) int { return a.checked.Compare(b.checked) })
	for _, d := range all {
		files = append(files, d.file)
	}
	return files
}
