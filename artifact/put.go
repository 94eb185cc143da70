package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"github.com/tilth-dev/tilth/records"
)

// Upload says what is uploaded, and by whom.
type Upload struct {
	// Identity is whose room it takes; empty = nobody's in particular.
	Identity string
	// Digest is the sha256 of all of it, SizeBytes its length.
	Digest    string
	SizeBytes int64
	// Offset is where it goes on; see Received.
	Offset int64
}

// pieceBytes are written at once.
const pieceBytes = 32 << 10

var errStored = errors.New("artifact is there")

// brokenError says that an upload broke off for a reason of its sender; what came may be resumed.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// Put stores an artifact, of which src yields the bytes from an offset on. Room is taken as they come. Where src fails midway, what came is
// kept as a part, and the identity's next upload may go on where it ends (see Received). Of several uploads of an
// artifact the first to end stores it, and the others end well with their next bytes. Putting what is there reads nothing.
func (s *Store) Put(ctx context.Context, up Upload, src io.Reader) error {
	if err := s.checkUpload(up); err != nil {
		s.countRefusal(err)
		return err
	}
	if there, err := s.Confirm(ctx, up.Digest); there || err != nil {
		return err
	}
	u, err := s.begin(ctx, up)
	if u != nil {
		err = s.end(u, s.receive(u, up.SizeBytes, src))
	}
	if err != nil {
		s.countRefusal(err)
		return fmt.Errorf("store artifact %s: %w", up.Digest, err)
	}
	return nil
}

func (s *Store) checkUpload(up Upload) error {
	switch {
	case !records.ValidDigest(up.Digest):
		return fmt.Errorf("store artifact: %q is not a sha256", up.Digest)
	case up.SizeBytes < 0 || up.Offset < 0 || up.Offset > up.SizeBytes:
		return fmt.Errorf("store artifact %s: %w: %d from %d on", up.Digest, ErrSize, up.SizeBytes, up.Offset)
	case up.SizeBytes > s.CapBytes || roomOf(up.SizeBytes) > s.CapBytes:
		return fmt.Errorf("store artifact %s: %w", up.Digest, s.noRoom(up.SizeBytes))
	case roomOf(up.SizeBytes) > s.UploadBytes:
		return fmt.Errorf("store artifact %s: %w: it has %d bytes, and the uploads of an identity may take %d",
			up.Digest, ErrFull, up.SizeBytes, s.UploadBytes)
	}
	return nil
}

// receive writes what src yields. A nil error means that all of it came.
func (s *Store) receive(u *upload, sizeBytes int64, src io.Reader) error {
	buf := make([]byte, min(pieceBytes, sizeBytes+1))
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := s.write(u, buf[:n], sizeBytes); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case u.sizeBytes == sizeBytes: // however it ended
			return s.write(u, nil, sizeBytes) // there is a file even of no bytes
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: %d, not %d", ErrSize, u.sizeBytes, sizeBytes)
		default:
			return &brokenError{err}
		}
	}
}

// open opens an upload's file, in which so many bytes are from earlier calls.
func (s *Store) open(u *upload, sizeBytes int64) error {
	if err := s.makeDir(filepath.Dir(u.path)); err != nil {
		return err
	}
	if u.sum == nil {
		u.sum = sha256.New()
		if err := s.hashPart(u, sizeBytes); err != nil {
			return err
		}
	}
	if name := u.name(uploadSuffix); name != u.path {
		if err := s.FS.Rename(u.path, name); err != nil {
			return err
		}
		u.path = name
	}
	var err error
	u.out, err = s.FS.OpenAppend(u.path)
	return err
}

func (s *Store) hashPart(u *upload, sizeBytes int64) error {
	if sizeBytes == 0 {
		return nil
	}
	f, err := s.FS.Open(u.path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(u.sum, f, sizeBytes)
	return err
}

// write appends bytes that came.
func (s *Store) write(u *upload, b []byte, sizeBytes int64) error {
	if u.sizeBytes+int64(len(b)) > sizeBytes {
		return fmt.Errorf("%w: more than %d", ErrSize, sizeBytes)
	}
	s.mu.Lock()
	there := s.files[u.digest] != nil
	var err error
	if !there {
		err = s.grow(u, int64(len(b)))
	}
	s.mu.Unlock()
	if there {
		return errStored
	}
	if err != nil {
		return err
	}
	if u.out == nil {
		if err := s.open(u, u.sizeBytes-int64(len(b))); err != nil {
			return s.full(err)
		}
	}
	if _, err := u.out.Write(b); err != nil {
		return s.full(err)
	}
	u.sum.Write(b)
	return nil
}

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

// keep keeps what came of an upload, once it is on the disk: what a failed sync leaves cannot be told from what is whole.
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
	f := &file{digest: u.digest, owner: u.owner, path: u.path, sizeBytes: u.sizeBytes, used: s.Now(), checked: u.checked, stamp: modified(u.path)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(&u.file)
	close(u.done)
	s.add(f)
	s.dropParts(u.digest)
	return nil
}

// beginSealing has the caller be the only one who gives an artifact its name, until ended is called. errStored when another
// has.
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

// settle brings bytes and name to the disk. After an error of any of the steps the file is of no use: the next sync of the same bytes may
// succeed although they were lost.
func (s *Store) settle(u *upload) error {
	// gofail: var beforeArtifactSync struct{}
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
