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

// Stores share an object store without telling each other anything, and yet none drops what another relies on. Objects
// have names that nothing else ever has, and who uses one gives it a new name when that is older than renewAfter:
//
//   - a store relies on an artifact only if it used it, by a name younger than freshFor, and renews that name for as
//     long as the artifact is pinned;
//   - it removes only names that are older than graceFor, which is much longer, each for itself; and former names
//     once there is a newer one.
//
// What was judged unused, and is used at that very moment, so stays under its new name. Which store drops an artifact
// follows from its digest (Part), so that all are counted and checked once. A store knows what it put or was asked
// for, and all of its part, which it lists.
const (
	freshFor   = 15 * time.Minute
	renewAfter = freshFor / 2
	// graceFor leaves room for clocks that differ, and for an object store that is away.
	graceFor = time.Hour
	// listEvery is how often the store lists what others put.
	listEvery = 15 * time.Minute
	// countFor is how long what was put here counts here whose part it is not: by then another store has listed it.
	countFor = 2 * listEvery
	// attendEvery is how often the object store is asked whether it is there, and what is due there is done.
	attendEvery = 10 * time.Second
	// tidyAfter is when a transfer is one that broke off.
	tidyAfter = 24 * time.Hour
	// mostFailures is how many artifacts in a row cannot be renewed, or removed, when the object store itself is taken
	// for away.
	mostFailures = 8
	// renewTries is how often others may be faster to give an artifact a new name.
	renewTries = 32
)

// mine says whether this store drops and checks an artifact.
func (s *Store) mine(digest string) bool { return !s.shared || s.Part.Has(digest) }

// mayGo says whether an artifact that this store does not need may be dropped, for all that is known of others.
func (s *Store) mayGo(f *file) bool {
	return !s.shared || s.Part.Has(f.digest) && s.Now().Sub(later(f.used, f.stamp)) >= graceFor
}

// relied says whether this store may take it that an artifact stays. The caller holds the lock.
func (s *Store) relied(f *file) bool {
	return !s.shared || s.pins[f.digest] > 0 || s.Now().Sub(f.stamp) < freshFor
}

// lookUp returns an artifact, which another store may have put; nil when there is none.
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
	if _, gone := s.doomed[b.Name]; gone {
		return nil, nil
	}
	f = fileOf(b)
	f.used = s.Now()
	s.add(f)
	return f, nil
}

// read opens an artifact, to which others may have given another name.
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

// rename asks for the name that an artifact has by now.
func (s *Store) rename(ctx context.Context, f *file) error {
	b, err := s.blobs.Find(ctx, f.digest)
	if err == nil {
		s.named(f, b)
	}
	return err
}

// named notes the name of an artifact, and the use that it tells of.
func (s *Store) named(f *file, b Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rewrite(f, b)
}

// rewrite is named, by a caller who holds the lock. What a name keeps from being dropped comes behind what may go.
func (s *Store) rewrite(f *file, b Blob) {
	f.path, f.stamp = b.Name, b.Used
	s.usedAt(f, b.Used)
}

// renew has an artifact be fresh. One that is not there any more is lost, which is fs.ErrNotExist.
func (s *Store) renew(ctx context.Context, f *file) error {
	var err error
	for range renewTries {
		if err = s.touchShared(ctx, f); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// By this name. Who gave it another one made it fresh, but looks late where the clocks differ.
		if err := s.rename(ctx, f); errors.Is(err, fs.ErrNotExist) {
			return errors.Join(s.lose(f), err)
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
		s.named(f, touched)
	}
	return err
}

// lose forgets an artifact that is not there any more, and has what needs it done again. ErrNotFound.
func (s *Store) lose(f *file) error {
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

// forgetOthers forgets what others are to drop, and nobody here has used for a while; what is used takes no room here
// once others count it. The caller holds the lock.
func (s *Store) forgetOthers() {
	now := s.Now()
	for digest, f := range s.files {
		switch {
		case s.mine(digest):
		case s.pins[digest] == 0 && now.Sub(f.used) >= freshFor:
			s.forget(f)
		case now.Sub(f.entered) >= countFor:
			s.uncount(f)
		}
	}
}

// attend looks after what is shared until ctx ends.
func (s *Store) attend(ctx context.Context) {
	var listed time.Time
	failing := false
	for ctx.Err() == nil {
		err := s.blobs.Ready(ctx)
		if err == nil {
			err = errors.Join(s.doDue(ctx, &failing), s.refreshSometimes(ctx, &listed))
		}
		if ctx.Err() == nil {
			s.tellAway(err)
		}
		_ = retry.Sleep(ctx, attendEvery)
	}
}

// doDue renews and removes what is due. It fails when the object store is away; what cannot be done for some artifacts
// alone is logged when that begins, and ends.
func (s *Store) doDue(ctx context.Context, failing *bool) error {
	renewals, noRenewals := s.renewPinned(ctx)
	removals, noRemovals := s.bury(ctx)
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

// forEach does something to each item, whichever it fails for. After too many failures in a row the object store is
// away, and the rest is left.
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
		if inARow++; inARow == mostFailures {
			return failed, err
		}
	}
	return failed, nil
}

// tellAway notes whether the object store is there, and logs when that changes.
func (s *Store) tellAway(err error) {
	s.mu.Lock()
	before := s.away
	s.away = err
	s.mu.Unlock()
	switch {
	case err != nil && before == nil:
		s.Logger.Error("the object store of artifacts is away, going on when it is back", "store", s.blobs.String(), "error", err)
	case err == nil && before != nil:
		s.Logger.Info("the object store of artifacts is back", "store", s.blobs.String())
	}
}

// Away is why artifacts can be neither stored nor served now; nil when they can.
func (s *Store) Away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// renewPinned keeps others from dropping what this store needs, those first that are due for longest.
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

// bury removes what was dropped.
func (s *Store) bury(ctx context.Context) (failed []error, away error) {
	s.mu.Lock()
	doomed := slices.Collect(maps.Values(s.doomed)) // in any order, so none is always behind those that fail
	s.mu.Unlock()
	return forEach(ctx, doomed, func(b Blob) error {
		if err := s.blobs.Remove(ctx, b); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.doomed, b.Name)
		return nil
	})
}

// refreshSometimes is refresh when that is due after the last one.
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

// refresh learns what others have put, touched and removed of this store's part.
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
	s.learn(latest, former, begun)
	if s.Part.Index > 0 {
		return nil
	}
	if err := s.blobs.Tidy(ctx, begun.Add(-tidyAfter)); err != nil && ctx.Err() == nil {
		s.Logger.Warn("transfers that broke off are not removed from the object store", "error", err)
	}
	return nil
}

// learn takes in what a listing, begun at an instant, tells of this store's part: the latest name of each artifact,
// and former ones.
func (s *Store) learn(latest map[string]Blob, former []Blob, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range former { // whose removal failed
		if begun.Sub(b.Used) >= graceFor {
			s.doomed[b.Name] = b
		}
	}
	s.compare(latest, begun)
	_ = s.makeRoom("", 0)
}

// compare enters and forgets what a listing, begun at an instant, tells of this store's part. What is pinned is looked
// for by its name first. The caller holds the lock.
func (s *Store) compare(latest map[string]Blob, begun time.Time) {
	for digest, f := range s.files {
		if _, there := latest[digest]; !there && s.Part.Has(digest) && s.pins[digest] == 0 && f.entered.Before(begun) {
			s.forget(f)
		}
	}
	for _, b := range latest {
		f := s.files[b.Digest]
		_, gone := s.doomed[b.Name]
		switch {
		case gone:
		case f == nil:
			s.add(fileOf(b))
		case b.Used.After(f.stamp):
			s.rewrite(f, b)
		}
	}
}

// usedAt notes a use of an artifact.
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
