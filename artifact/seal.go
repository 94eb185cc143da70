package artifact

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// end settles an upload that ended with an error, or none.
func (s *Store) end(u *upload, err error) error {
	var broken *brokenError
	switch {
	case err == nil:
		err = s.seal(u)
	case (errors.As(err, &broken) || errors.Is(err, ErrBusy)) && u.sizeBytes > 0: // it may go on
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
		if err == nil {
			err = s.FS.Rename(u.path, u.name(partSuffix))
		}
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
	ended, err := s.beginSealing(u.digest)
	if err != nil {
		return err
	}
	defer ended()
	if err := s.settle(u); err != nil {
		return s.full(err)
	}
	f := &file{
		digest: u.digest, owner: u.owner, path: u.path, sizeBytes: u.sizeBytes,
		used: s.Now(), checked: u.checked, stamp: modified(u.path),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(&u.file)
	close(u.done)
	s.add(f)
	s.dropParts(u.digest)
	return nil
}

// beginSealing has the caller be the only one who gives an artifact its name, until ended is called. errStored when
// another has.
func (s *Store) beginSealing(digest string) (ended func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sealing[digest] != nil {
		_ = s.waitUnlocked(context.Background(), s.sealing[digest]) // as long as the disk takes
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
// of the same bytes may succeed although they were lost.
func (s *Store) settle(u *upload) error {
	// gofail: var beforeArtifactSync struct{}
	// gofail: var failedArtifactSync string
	// return errors.Join(errors.New(failedArtifactSync), u.out.(interface{ Truncate(int64) error }).Truncate(0))
	err := errors.Join(u.out.Sync(), u.out.Close())
	u.out = nil
	if err != nil {
		return err
	}
	u.checked = s.Now()
	u.remember()
	// gofail: var beforeArtifactRename struct{}
	if err := s.FS.Rename(u.path, s.path(u.digest)); err != nil {
		return err
	}
	u.path = s.path(u.digest)
	// gofail: var afterArtifactRename struct{}
	return s.FS.SyncDir(filepath.Dir(u.path))
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
