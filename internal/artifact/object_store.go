package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
)

// Stores share an object store without communicating, and yet none drops what another relies on. Object names are
// never reused, and a use renames an object whose name is older than renewAfter:
//
//   - A store relies on an artifact only if it used it under a name younger than freshFor. It renews that name for as
//     long as the artifact is pinned.
//   - A store removes only names older than graceFor, which is much longer, and former names once there is a newer
//     one. Each name is removed individually.
//
// So an artifact that one store judges unused while another uses it survives under its new name. Its digest determines
// which store drops it (Part), so that each is accounted for and verified once. A store knows the artifacts that it
// stored or was asked for, and all of its part, which it lists.
const (
	freshFor   = 15 * time.Minute
	renewAfter = freshFor / 2
	// graceFor allows for clock differences and for outages of the object store.
	graceFor = time.Hour
	// listEvery is how often the store lists the artifacts of the other stores.
	listEvery = 15 * time.Minute
	// countFor is how long an artifact outside this store's part is accounted for here: by then another store has
	// listed it.
	countFor = 2 * listEvery
	// maintainEvery is how often the object store is probed and pending work done.
	maintainEvery = 10 * time.Second
	// tidyAfter is the age at which a transfer counts as interrupted.
	tidyAfter = 24 * time.Hour
	// maxFailures is the number of consecutive failures to renew or remove artifacts at which the object store counts
	// as unavailable.
	maxFailures = 8
	// renewTries is how often other stores may win the race to rename an artifact.
	renewTries = 32
)

// ownsPart reports whether this store drops and verifies an artifact.
func (s *Store) ownsPart(digest string) bool { return !s.shared || s.Part.Has(digest) }

// mayGo reports whether an artifact that this store does not need may be dropped without harm to other stores.
func (s *Store) mayGo(f *file) bool {
	return !s.shared || s.Part.Has(f.digest) && s.Now().Sub(later(f.used, f.stamp)) >= graceFor
}

// isReliable reports whether this store may rely on an artifact to stay. s.mu must be held.
func (s *Store) isReliable(f *file) bool {
	return !s.shared || s.pins[f.digest] > 0 || s.Now().Sub(f.stamp) < freshFor
}

// lookUp returns an artifact, possibly stored by another store, or nil.
func (s *Store) lookUp(ctx context.Context, digest string) (*file, error) {
	s.mu.Lock()
	f := s.files[digest]
	s.mu.Unlock()
	if f != nil || !s.shared {
		return f, nil
	}
	b, err := s.blobs.Find(ctx, digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[digest]; f != nil {
		return f, nil
	}
	if _, gone := s.removals[b.Name]; gone {
		return nil, nil
	}
	f = fileOf(b)
	f.used = s.Now()
	s.add(f)
	return f, nil
}

// read opens an artifact that other stores may have renamed.
func (s *Store) read(ctx context.Context, f *file, offset int64) (io.ReadCloser, error) {
	src, err := s.blobs.Open(ctx, s.blobOf(f), offset)
	if !s.shared || !errors.Is(err, fs.ErrNotExist) {
		return src, err
	}
	if err := s.rename(ctx, f); err != nil {
		return nil, err
	}
	return s.blobs.Open(ctx, s.blobOf(f), offset)
}

// rename looks up the current name of an artifact.
func (s *Store) rename(ctx context.Context, f *file) error {
	b, err := s.blobs.Find(ctx, f.digest)
	if err == nil {
		s.setName(f, b)
	}
	return err
}

// setName records the name of an artifact, and the use that the name implies.
func (s *Store) setName(f *file, b Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setNameLocked(f, b)
}

// setNameLocked is like named; s.mu must be held. A file that its name protects is ordered behind the droppable ones.
func (s *Store) setNameLocked(f *file, b Blob) {
	f.path, f.stamp = b.Name, b.Used
	s.usedAt(f, b.Used)
}

// renew makes the name of an artifact fresh. If the artifact is gone, renew forgets it and returns fs.ErrNotExist.
func (s *Store) renew(ctx context.Context, f *file) error {
	var err error
	for range renewTries {
		if err = s.touchShared(ctx, f); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Another store has renamed it. The new name is fresh, but may look old if the clocks differ.
		if err := s.rename(ctx, f); errors.Is(err, fs.ErrNotExist) {
			return errors.Join(s.forgetLost(f), err)
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: its names change too fast: %s", ErrAway, err)
}

func (s *Store) touchShared(ctx context.Context, f *file) error {
	b := s.blobOf(f)
	if s.Now().Sub(b.Used) < renewAfter {
		return nil
	}
	touched, err := s.blobs.Touch(ctx, b, s.Now())
	if err == nil {
		s.setName(f, touched)
	}
	return err
}

// forgetLost forgets a vanished artifact, so that its content is produced again, and returns ErrNotFound.
func (s *Store) forgetLost(f *file) error {
	s.mu.Lock()
	known, needed := s.files[f.digest] == f, s.pins[f.digest] > 0
	if known {
		s.forget(f)
	}
	s.mu.Unlock()
	if known && needed {
		s.Logger.Warn("artifact is gone from the object store", "artifact", f.digest)
		s.Damaged(f.digest)
	}
	return fmt.Errorf("%w: %s", ErrNotFound, f.digest)
}

// forgetOthers forgets artifacts of other parts that were not used here for a while; the space of used ones is
// released once their owner accounts for it. s.mu must be held.
func (s *Store) forgetOthers() {
	now := s.Now()
	for digest, f := range s.files {
		switch {
		case s.ownsPart(digest):
		case s.pins[digest] == 0 && now.Sub(f.used) >= freshFor:
			s.forget(f)
		case now.Sub(f.entered) >= countFor:
			s.uncount(f)
		}
	}
}

// maintainShared maintains the shared artifacts until ctx ends.
func (s *Store) maintainShared(ctx context.Context) {
	var listed time.Time
	failing := false
	for ctx.Err() == nil {
		err := s.blobs.Ready(ctx)
		if err == nil {
			err = errors.Join(s.doPending(ctx, &failing), s.refreshSometimes(ctx, &listed))
		}
		if ctx.Err() == nil {
			s.setAway(err)
		}
		_ = retry.Sleep(ctx, maintainEvery)
	}
}

// doPending does pending renewals and removals. It fails if the object store is unavailable; failures of single
// artifacts are logged when they begin and end.
func (s *Store) doPending(ctx context.Context, failing *bool) error {
	renewals, noRenewals := s.renewPinned(ctx)
	removals, noRemovals := s.removeDropped(ctx)
	failed := slices.Concat(renewals, removals)
	switch before := *failing; {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(failed) > 0 && !before:
		s.Logger.Warn("artifacts cannot be renewed or removed in the object store, trying again", "artifacts", len(failed), "error", failed[0])
	case len(failed) == 0 && before:
		s.Logger.Info("all artifacts can be renewed and removed in the object store again")
	}
	*failing = len(failed) > 0
	return errors.Join(noRenewals, noRemovals)
}

// forEach calls do for each item, whatever fails. After too many consecutive failures the object store counts as
// unavailable, and the remaining items are skipped.
func forEach[T any](ctx context.Context, items []T, do func(T) error) (failed []error, away error) {
	inARow := 0
	for _, item := range items {
		err := do(item)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			inARow = 0
			continue
		}
		failed = append(failed, err)
		if inARow++; inARow == maxFailures {
			return failed, err
		}
	}
	return failed, nil
}

// setAway records whether the object store is available, and logs changes.
func (s *Store) setAway(err error) {
	s.mu.Lock()
	before := s.away
	s.away = err
	s.mu.Unlock()
	switch {
	case err != nil && before == nil:
		s.Logger.Error("artifact object store unavailable; retrying", "store", s.blobs.String(), "error", err)
	case err == nil && before != nil:
		s.Logger.Info("artifact object store available again", "store", s.blobs.String())
	}
}

// Unavailable returns why artifacts can neither be stored nor served; nil if they can.
func (s *Store) Unavailable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// renewPinned renews the artifacts that this store needs, the longest overdue first.
func (s *Store) renewPinned(ctx context.Context) (failed []error, away error) {
	s.mu.Lock()
	var due []*file
	for digest := range s.pins {
		if f := s.files[digest]; f != nil && s.Now().Sub(f.stamp) >= renewAfter {
			due = append(due, f)
		}
	}
	slices.SortFunc(due, func(a, b *file) int { return later(a.stamp, a.failed).Compare(later(b.stamp, b.failed)) })
	s.mu.Unlock()
	return forEach(ctx, due, func(f *file) error {
		err := s.renew(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.failed = s.Now()
		}
		return err
	})
}

// removeDropped removes the dropped artifacts.
func (s *Store) removeDropped(ctx context.Context) (failed []error, away error) {
	s.mu.Lock()
	doomed := slices.Collect(maps.Values(s.removals)) // in random order, so that failing ones do not block the rest
	s.mu.Unlock()
	return forEach(ctx, doomed, func(b Blob) error {
		if err := s.blobs.Remove(ctx, b); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.removals, b.Name)
		return nil
	})
}

// refreshSometimes calls refresh if the last one is long enough ago.
func (s *Store) refreshSometimes(ctx context.Context, last *time.Time) error {
	now := s.Now()
	if now.Sub(*last) < listEvery {
		return nil
	}
	err := s.refresh(ctx)
	if err == nil {
		*last = now
	}
	return err
}

// refresh lists the changes of other stores to this store's part.
func (s *Store) refresh(ctx context.Context) error {
	begun := s.Now()
	latest := map[string]Blob{}
	var former []Blob
	err := s.blobs.List(ctx, func(b Blob) error {
		if !s.Part.Has(b.Digest) {
			return nil
		}
		other, twice := latest[b.Digest]
		if twice && other.Used.After(b.Used) {
			b, other = other, b
		}
		if latest[b.Digest] = b; twice {
			former = append(former, other)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.applyListing(latest, former, begun)
	if s.Part.Index > 0 {
		return nil
	}
	if err := s.blobs.Tidy(ctx, begun.Add(-tidyAfter)); err != nil && ctx.Err() == nil {
		s.Logger.Warn("transfers that broke off are not removed from the object store", "error", err)
	}
	return nil
}

// applyListing applies a listing of this store's part, begun at an instant: the latest name of each artifact, and
// former names.
func (s *Store) applyListing(latest map[string]Blob, former []Blob, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range former { // their removal failed
		if begun.Sub(b.Used) >= graceFor {
			s.removals[b.Name] = b
		}
	}
	s.compare(latest, begun)
	_ = s.makeRoom("", 0)
}

// compare updates the store from a listing of its part, begun at an instant. Pinned artifacts are looked up by name
// first. s.mu must be held.
func (s *Store) compare(latest map[string]Blob, begun time.Time) {
	for digest, f := range s.files {
		if _, there := latest[digest]; !there && s.Part.Has(digest) && s.pins[digest] == 0 && f.entered.Before(begun) {
			s.forget(f)
		}
	}
	for _, b := range latest {
		f := s.files[b.Digest]
		_, gone := s.removals[b.Name]
		switch {
		case gone:
		case f == nil:
			s.add(fileOf(b))
		case b.Used.After(f.stamp):
			s.setNameLocked(f, b)
		}
	}
}

// usedAt records a use of an artifact.
func (s *Store) usedAt(f *file, at time.Time) {
	if !at.After(f.used) {
		return
	}
	loose := f.place != nil
	s.hold(f)
	f.used = at
	if loose {
		s.release(f)
	}
}
