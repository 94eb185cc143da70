package artifact

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"syscall"
)

// end completes an upload, with or without an error.
func (s *Store) end(u *upload, err error) error {
	if err == nil {
		err = s.seal(u)
	}
	if (errors.As(err, new(*brokenError)) || errors.Is(err, ErrBusy)) && u.sizeBytes > 0 { // may be resumed
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

// keep keeps the received bytes of an upload once they are synced. Bytes whose sync failed are not kept: they cannot
// be distinguished from intact ones.
func (s *Store) keep(u *upload) {
	var err error
	if u.out != nil { // bytes arrived in this process
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

// discard ends and removes an unusable upload.
func (s *Store) discard(u *upload) {
	if u.out != nil {
		_ = u.out.Close() // the content is discarded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(u.path)
	s.forget(&u.file)
	close(u.done)
}

// seal verifies the content, renames the file and enters it as an artifact.
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
	f.room = roomOf(f.sizeBytes) // accounted here until the store that owns its part has listed it
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

// beginSealing makes the caller the only one to seal an artifact until it calls ended. It returns errStored if another
// call has sealed it.
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
	return s.markBusy(s.sealing, digest), nil
}

// settle syncs the content and the name. If any step fails the file is unusable: a later sync of the same bytes may
// succeed although they were lost. A failed transfer to a server may be repeated, though.
func (s *Store) settle(u *upload) (Blob, error) {
	// gofail: var beforeArtifactSync struct{} gofail: var failedArtifactSync string lost := u.out.(interface{
	// Truncate(int64) error }).Truncate(0) return Blob{}, errors.Join(errors.New(failedArtifactSync), lost)
	err := errors.Join(u.out.Sync(), u.out.Close())
	u.out = nil
	if err != nil {
		return Blob{}, err
	}
	b := u.blob()
	b.Checked = s.Now()
	b.Used = b.Checked
	// A server may take longer than the call lasts; a repeated call then finds the artifact.
	b, err = s.blobs.Put(context.WithoutCancel(u.call), b, u.path)
	switch {
	case err != nil && s.shared:
		err = &brokenError{err}
	case err != nil:
		u.path = b.Name // its current name
	}
	return b, err
}

// makeDir creates a folder of the store durably.
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

// full replaces the error of a full disk by ErrFull.
func (s *Store) full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk of %s is full: free some or move the store (%v)", ErrFull, s.Dir, err)
	}
	return err
}
