package artifact

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// sweepEvery is how often what is too old is looked for, and what was dropped is logged.
const sweepEvery = time.Minute

// Run looks after a store until ctx ends: it drops what is too old, and checks what is stored, each artifact once in
// ScrubEvery, at no more than ScrubBytes a second.
func (s *Store) Run(ctx context.Context) {
	var scrub sync.WaitGroup
	defer scrub.Wait()
	if s.ScrubBytes > 0 {
		scrub.Go(func() { s.scrub(ctx) })
	}
	if s.shared {
		scrub.Go(func() { s.attend(ctx) })
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

// sweep drops what was not used, or not resumed, for too long.
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

// logDropped says what was dropped since it was said last.
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

// scrub checks what is stored, what was checked longest ago first.
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

// due are the artifacts to be checked now.
func (s *Store) due() (files []*file) {
	type due struct {
		*file
		checked time.Time
	}
	var all []due
	s.mu.Lock()
	before := s.Now().Add(-s.ScrubEvery)
	for _, f := range s.files {
		if !f.checked.After(before) && s.mine(f.digest) {
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
