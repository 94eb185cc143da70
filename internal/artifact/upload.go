package artifact

import (
	"context"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
)

// Names of what came of uploads. Only parts are resumed: they were seen to reach the disk after the upload broke off.
const (
	uploadSuffix = ".upload"
	partSuffix   = ".part"
)

// upload is an unfinished upload. While it is under way, the call that it belongs to alone touches sum and out.
type upload struct {
	file
	sum hash.Hash // of what came; nil when it came in an earlier life
	out File
	// The call that sends it, nil while there is none, and a channel that is closed when it has ended.
	call context.Context
	done chan struct{}
}

// name is the path of an upload under way, or of a part.
func (u *upload) name(suffix string) string {
	return u.path[:len(u.path)-len(filepath.Ext(u.path))] + suffix
}

// begin makes the upload that the caller is to send; nil when the artifact is there.
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
		return nil, fmt.Errorf("%w: %d are under way for the same identity, as many as it may have", ErrBusy, a.uploads)
	}
	s.number++
	path := fmt.Sprintf("%s.%s.%d%s", s.path(digest), owner, s.number, uploadSuffix)
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

// count adds to the room of an account's uploads.
func (s *Store) count(a *account, room int64) {
	s.used += room
	a.loose += room
	a.unfinished += room
}

// forgetUpload takes back addUpload, but for the room used.
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

// grow takes the room for bytes that came; the file itself counts from the first on.
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

// roomForUpload makes room, within what the owner's unfinished uploads may take.
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

// dropPart drops the oldest upload of an owner that broke off; false when there is none.
func (s *Store) dropPart(a *account) bool {
	part := front(&a.parts)
	if part == nil {
		return false
	}
	s.drop(part, droppedPart)
	return true
}

// part is an owner's upload that broke off; nil when there is none.
func (s *Store) part(owner, digest string) *upload {
	for _, u := range s.uploads[digest] {
		if u.owner == owner && u.call == nil {
			return u
		}
	}
	return nil
}

// dropParts drops what is left of uploads of an artifact that is there.
func (s *Store) dropParts(digest string) {
	for _, u := range slices.Clone(s.uploads[digest]) {
		if u.call == nil {
			s.drop(&u.file, droppedPart)
		}
	}
}

// waitForEnding waits until no upload of an owner is left whose call has ended but which is not a part yet: who lost
// a connection comes back sooner than the disk has what came. The caller holds the lock, which is given up meanwhile.
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

// waitUnlocked waits without the lock, which the caller holds.
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

// Received is how many bytes came of an identity's upload that broke off.
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
