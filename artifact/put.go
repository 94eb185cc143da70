package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tilth-dev/tilth/records"
)

// Put stores an artifact of sizeBytes bytes, of which src yields those from offset on. Where src fails midway, what came
// is kept as a part, and the next Put must go on where it ends (see Stat). Putting what is there already reads nothing.
func (s *Store) Put(ctx context.Context, digest string, sizeBytes, offset int64, src io.Reader) error {
	if !records.ValidDigest(digest) {
		return fmt.Errorf("store artifact: %q is not a sha256", digest)
	}
	if sizeBytes < 0 || offset < 0 || offset > sizeBytes {
		return fmt.Errorf("store artifact %s: %w: %d from %d on", digest, ErrSize, sizeBytes, offset)
	}
	e, err := s.begin(ctx, digest, sizeBytes, offset)
	if e == nil || err != nil {
		return err
	}
	err = s.receive(e.digest, sizeBytes, offset, src)
	s.end(e, err)
	if err != nil {
		return fmt.Errorf("store artifact %s: %w", digest, err)
	}
	return nil
}

// begin reserves the room and makes the caller the only one to write this artifact. It returns nil when it is there.
func (s *Store) begin(ctx context.Context, digest string, sizeBytes, offset int64) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e := s.entries[digest]
		switch {
		case e == nil:
			e = &entry{digest: digest}
			s.insert(e)
		case e.complete:
			s.lru.MoveToBack(e.place)
			return nil, nil
		case e.busy != nil:
			if err := s.waitFor(ctx, e.busy); err != nil {
				return nil, err
			}
			continue
		}
		return e, s.reserve(e, sizeBytes, offset)
	}
}

// waitFor waits for another upload to end, without the lock, which the caller holds.
func (s *Store) waitFor(ctx context.Context, busy <-chan struct{}) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-busy:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) reserve(e *entry, sizeBytes, offset int64) error {
	part := fileSize(s.partPath(e.digest))
	if part != offset {
		if part == 0 {
			s.drop(e)
		}
		return fmt.Errorf("store artifact %s: %w: at %d, not %d", e.digest, ErrOffset, part, offset)
	}
	e.busy = make(chan struct{})
	if err := s.makeRoom(sizeBytes - e.size); err != nil {
		e.busy = nil
		s.drop(e)
		return fmt.Errorf("store artifact %s of %d bytes: %w", e.digest, sizeBytes, err)
	}
	s.used += sizeBytes - e.size
	e.size = sizeBytes
	return nil
}

// end settles the entry after its upload.
func (s *Store) end(e *entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if err == nil {
		e.complete = true
		s.lru.MoveToBack(e.place)
		return
	}
	received := fileSize(s.partPath(e.digest))
	s.used += received - e.size
	e.size = received
	// Only what broke off in order is worth resuming.
	if received == 0 || errors.Is(err, ErrDigest) || errors.Is(err, ErrSize) || errors.Is(err, ErrFull) {
		s.drop(e)
	}
}

// receive appends src to the part, checks the whole and gives it its name.
func (s *Store) receive(digest string, sizeBytes, offset int64, src io.Reader) error {
	part := s.partPath(digest)
	dir := filepath.Dir(part)
	if err := s.makeDir(dir); err != nil {
		return s.full(err)
	}
	sum := sha256.New()
	if err := hashFile(sum, part, offset); err != nil {
		return err
	}
	f, err := s.fs.OpenAppend(part)
	if err != nil {
		return s.full(err)
	}
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(src, sizeBytes-offset+1))
	switch {
	case err != nil:
	case offset+n != sizeBytes:
		err = fmt.Errorf("%w: %d, not %d", ErrSize, offset+n, sizeBytes)
	case hex.EncodeToString(sum.Sum(nil)) != digest:
		err = ErrDigest
	default:
		// gofail: var beforeArtifactSync struct{}
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return s.full(err)
	}
	// gofail: var beforeArtifactRename struct{}
	err = s.fs.Rename(part, s.path(digest))
	// gofail: var afterArtifactRename struct{}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	return s.full(err)
}

// makeDir makes a folder of the store, so that it outlives a power cut.
func (s *Store) makeDir(dir string) error {
	s.mu.Lock()
	there := s.folders[dir]
	s.mu.Unlock()
	if there {
		return nil
	}
	if err := s.fs.MakeDir(dir); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
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
		return fmt.Errorf("%w: the disk of %s is full: free some or move the store (%v)", ErrFull, s.dir, err)
	}
	return err
}

// hashFile adds the first size bytes of a file, which may be missing when size is 0.
func hashFile(sum hash.Hash, path string, size int64) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && size == 0 {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(sum, f, size)
	return err
}
