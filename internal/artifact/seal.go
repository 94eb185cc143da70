package artifact

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"syscall"
)

// end settles an upload that ended with an error, or none.
func (s *Store) end(u *upload, err error) error {
	if err == nil {
		err = s.seal(u)
	}
	var broken *brokenError
	if (errors.As(err, &broken) || errors.Is(err, ErrBusy)) && u.sizeBytes > 0 { // it may go on
		s.keep(u)
		return err
	}
	if err != nil {
		s.discard(u)
	}
	if errors.Is(err, errStored) {
		return nil
	}
	return err
}

// keep keeps what came of an upload, once it is on the disk: what a failed sync leaves cannot be told from what is
// whole.
func (s *Store) keep(u *upload) {
	var err error
	if u.out != nil { // more came than there was
		err = errors.Join(u.out.Sync(), u.out.Close())
		u.out = nil
	}
	if name := u.name(partSuffix); err == nil && name != u.path {
		err = s.FS.Rename(u.path, name)
	}
	if err != nil {
		s.Logger.Warn("an upload that broke off cannot be resumed", "artifact", u.digest, "error", err)
		s.discard(u)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shorter := s.part(u.owner, u.digest)
	u.path, u.call, u.used = u.name(partSuffix), nil, s.Now()
	close(u.done)
	s.release(&u.file)
	if shorter != nil && shorter.sizeBytes > u.sizeBytes || s.files[u.digest] != nil {
		shorter = u
	}
	if shorter != nil {
		s.drop(&shorter.file, droppedPart)
	}
}

// discard ends an upload that is of no use.
func (s *Store) discard(u *upload) {
	if u.out != nil {
		_ = u.out.Close() // nobody reads it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(u.path)
	s.forget(&u.file)
	close(u.done)
}

// seal checks the whole, gives it its name and makes it an artifact.
func (s *Store) seal(u *upload) error {
	if hex.EncodeToString(u.sum.Sum(nil)) != u.digest {
		return ErrDigest
	}
	ended, err := s.beginSealing(u.call, u.digest)
	if err != nil {
		return err
	}
	defer ended()
	b, err := s.settle(u)
	if err != nil {
		return s.full(err)
	}
	f := fileOf(b)
	f.used = s.Now()
	f.room = roomOf(f.sizeBytes) // whose part it may be, which counts it when it has listed it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared {
		s.remove(u.path)
	}
	s.forget(&u.file)
	close(u.done)
	s.add(f)
	s.dropParts(u.digest)
	return nil
}

// beginSealing has the caller be the only one who gives an artifact its name, until ended is called. errStored when
// another has.
func (s *Store) beginSealing(ctx context.Context, digest string) (ended func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sealing[digest] != nil {
		if err := s.waitUnlocked(ctx, s.sealing[digest]); err != nil {
			return nil, &brokenError{err}
		}
	}
	if s.files[digest] != nil {
		return nil, errStored
	}
	done := make(chan struct{})
	s.sealing[digest] = done
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sealing, digest)
		close(done)
	}, nil
}

// settle brings bytes and name to the disk. After an error of any of the steps the file is of no use: the next sync
// of the same bytes may succeed although they were lost. What a server did not take, though, it may take later.
func (s *Store) settle(u *upload) (Blob, error) {
	// gofail: var beforeArtifactSync struct{}
	// gofail: var failedArtifactSync string
	// lost := u.out.(interface{ Truncate(int64) error }).Truncate(0)
	// return Blob{}, errors.Join(errors.New(failedArtifactSync), lost)
	err := errors.Join(u.out.Sync(), u.out.Close())
	u.out = nil
	if err != nil {
		return Blob{}, err
	}
	b := u.blob()
	b.Checked = s.Now()
	b.Used = b.Checked
	// A server may take longer than a call: who calls again finds it done.
	b, err = s.blobs.Put(context.WithoutCancel(u.call), b, u.path)
	switch {
	case err != nil && s.shared:
		err = &brokenError{err}
	case err != nil:
		u.path = b.Name // whichever it has by now
	}
	return b, err
}

// makeDir makes a folder of the store, so that it outlives a power cut.
func (s *Store) makeDir(dir string) error {
	s.mu.Lock()
	there := s.folders[dir]
	s.mu.Unlock()
	if there {
		return nil
	}
	if err := s.FS.MakeDir(dir); err != nil {
		return err
	}
	if err := s.FS.SyncDir(s.Dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folders[dir] = true
	return nil
}

// full recognises a full disk.
func (s *Store) full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk of %s is full: free some or move the store (%v)", ErrFull, s.Dir, err)
	}
	return err
}
