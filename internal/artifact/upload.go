package artifact

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"syscall"
)

// Suffixes of upload files. Only parts are resumed: they were synced after the upload was interrupted.
const (
	uploadSuffix = ".upload"
	partSuffix   = ".part"
)

// upload is an unfinished upload. While a call is in progress, only that call uses sum and out.
type upload struct {
	file
	sum hash.Hash // hash of the received bytes; nil if they arrived before a restart
	out File
	// call is the call that sends the upload, nil between calls; done is closed when it ends.
	call context.Context
	done chan struct{}
}

// name returns the path of an upload in progress, or of a part.
func (u *upload) name(suffix string) string {
	return u.path[:len(u.path)-len(filepath.Ext(u.path))] + suffix
}

// begin registers the upload that the caller is to send; nil if the artifact is present.
func (s *Store) begin(ctx context.Context, up Upload) (*upload, error) {
	owner := ownerOf(up.Identity)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waitForEnding(ctx, owner, up.Digest); err != nil {
		return nil, err
	}
	if s.files[up.Digest] != nil {
		return nil, nil
	}
	part := s.part(owner, up.Digest)
	if up.Offset > 0 {
		if part == nil || part.sizeBytes != up.Offset {
			return nil, fmt.Errorf("%w: it begins at %d", ErrOffset, up.Offset)
		}
		s.hold(&part.file)
		part.call, part.done = ctx, make(chan struct{})
		return part, nil
	}
	if part != nil {
		s.drop(&part.file, droppedPart)
	}
	return s.newUpload(ctx, owner, up.Digest)
}

func (s *Store) newUpload(ctx context.Context, owner, digest string) (*upload, error) {
	a := s.account(owner)
	defer s.tidy(owner)
	if a.uploads >= s.Uploads && !s.dropPart(a) {
		return nil, fmt.Errorf("%w: %d uploads of this identity are in progress, which is the limit", ErrBusy, a.uploads)
	}
	s.number++
	path := fmt.Sprintf("%s.%s.%d%s", filepath.Join(s.Dir, digest[:2], digest), owner, s.number, uploadSuffix)
	u := &upload{file: file{digest: digest, owner: owner, path: path}, call: ctx, done: make(chan struct{})}
	s.addUpload(u)
	return u, nil
}

func (s *Store) addUpload(u *upload) {
	u.upload = u
	s.uploads[u.digest] = append(s.uploads[u.digest], u)
	a := s.account(u.owner)
	a.uploads++
	s.count(a, u.room)
}

// count adds to the space of an account's uploads.
func (s *Store) count(a *account, room int64) {
	s.used += room
	a.loose += room
	a.unfinished += room
}

// forgetUpload reverts addUpload, except for the space used.
func (s *Store) forgetUpload(u *upload) {
	left := slices.DeleteFunc(s.uploads[u.digest], func(other *upload) bool { return other == u })
	if s.uploads[u.digest] = left; len(left) == 0 {
		delete(s.uploads, u.digest)
	}
	a := s.owners[u.owner]
	a.uploads--
	a.loose -= u.room
	a.unfinished -= u.room
	s.tidy(u.owner)
}

// grow takes the space for received bytes; the overhead of the file is included from the start.
func (s *Store) grow(u *upload, bytes int64) error {
	more := roomOf(u.sizeBytes+bytes) - u.room
	if err := s.roomForUpload(u.owner, more); err != nil {
		return err
	}
	u.sizeBytes += bytes
	u.room += more
	s.count(s.owners[u.owner], more)
	return nil
}

// roomForUpload makes space, within the bounds of the owner's unfinished uploads.
func (s *Store) roomForUpload(owner string, need int64) error {
	a := s.account(owner)
	for a.unfinished+need > s.UploadBytes {
		if !s.dropPart(a) {
			return fmt.Errorf("%w: those of the same identity take %d bytes, and may take %d",
				ErrBusy, a.unfinished, s.UploadBytes)
		}
	}
	return s.makeRoom(owner, need)
}

// dropPart drops the oldest interrupted upload of an owner, and reports whether there was one.
func (s *Store) dropPart(a *account) bool {
	part := front(&a.parts)
	if part == nil {
		return false
	}
	s.drop(part, droppedPart)
	return true
}

// part returns an owner's interrupted upload, or nil.
func (s *Store) part(owner, digest string) *upload {
	for _, u := range s.uploads[digest] {
		if u.owner == owner && u.call == nil {
			return u
		}
	}
	return nil
}

// dropParts drops the parts of an artifact that is now present.
func (s *Store) dropParts(digest string) {
	for _, u := range slices.Clone(s.uploads[digest]) {
		if u.call == nil {
			s.drop(&u.file, droppedPart)
		}
	}
}

// waitForEnding waits until no upload of an owner is between the end of its call and its conversion to a part: a
// client may reconnect before the received bytes are synced. s.mu must be held, and is released while waiting.
func (s *Store) waitForEnding(ctx context.Context, owner, digest string) error {
	for {
		i := slices.IndexFunc(s.uploads[digest], func(u *upload) bool {
			return u.owner == owner && u.call != nil && u.call.Err() != nil
		})
		if i < 0 {
			return nil
		}
		done := s.uploads[digest][i].done
		if err := s.waitUnlocked(ctx, done); err != nil {
			return err
		}
	}
}

// waitUnlocked releases s.mu, which must be held, while it waits.
func (s *Store) waitUnlocked(ctx context.Context, done <-chan struct{}) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Received returns how many bytes arrived of an identity's interrupted upload.
func (s *Store) Received(ctx context.Context, identity, digest string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := ownerOf(identity)
	if err := s.waitForEnding(ctx, owner, digest); err != nil {
		return 0, err
	}
	if part := s.part(owner, digest); part != nil {
		return part.sizeBytes, nil
	}
	return 0, nil
}

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
