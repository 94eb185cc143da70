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
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
)

// trustFor is how long an artifact is trusted after it was verified.
const trustFor = time.Hour

// Confirm reports whether an artifact is present and intact. It reads the artifact unless it was verified within the
// hour and has not been written since. A damaged artifact is set aside and reported as missing.
func (s *Store) Confirm(ctx context.Context, digest string) (there bool, err error) {
	for {
		f, err := s.lookUp(ctx, digest)
		if f == nil || err != nil {
			return false, err
		}
		if s.shared {
			if err := s.renew(ctx, f); errors.Is(err, fs.ErrNotExist) {
				continue // dropped concurrently
			} else if err != nil {
				return false, err
			}
		}
		if !s.needsVerification(f) {
			return true, nil
		}
		ended, err := s.beginCheck(ctx, digest)
		if err != nil {
			return false, err
		}
		if ended == nil {
			continue // verified concurrently
		}
		err = s.verify(ctx, f, func(int) error { return context.Cause(ctx) })
		ended()
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}
}

// needsVerification reports whether an artifact has to be verified before use.
func (s *Store) needsVerification(f *file) bool {
	b := s.blobOf(f)
	return s.Now().Sub(b.Checked) >= trustFor || !s.blobs.Written(b).Equal(b.Used)
}

// beginCheck makes the caller the only one to verify an artifact until it calls ended. It returns nil after waiting
// for another verification.
func (s *Store) beginCheck(ctx context.Context, digest string) (ended func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.checking[digest]; done != nil {
		return nil, s.waitUnlocked(ctx, done)
	}
	return s.markBusy(s.checking, digest), nil
}

// markBusy marks an artifact as busy with some work until the returned function is called. s.mu must be held now, but
// not then.
func (s *Store) markBusy(work map[string]chan struct{}, digest string) (ended func()) {
	done := make(chan struct{})
	work[digest] = done
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(work, digest)
		close(done)
	}
}

// verify reads an artifact from the disk and compares its digest. pace is called with the size of each piece and may
// stop the reading with an error. verify returns ErrDamaged if the artifact was set aside.
func (s *Store) verify(ctx context.Context, f *file, pace func(bytes int) error) error {
	b := s.blobOf(f)
	found := s.blobs.Written(b)
	src, err := s.read(ctx, f, 0)
	if err != nil {
		return s.classifyReadError(f, err)
	}
	err = readWhole(src, f.digest, func(b []byte) error {
		s.mu.Lock()
		s.stats.CheckedBytes += int64(len(b))
		s.mu.Unlock()
		return pace(len(b))
	})
	if err != nil {
		return s.classifyReadError(f, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.digest] != f {
		return nil // removed concurrently
	}
	f.checked = s.Now()
	if f.stamp.Equal(b.Used) {
		f.stamp = found
	}
	s.blobs.Note(f.blob())
	return ctx.Err()
}

// readWhole reads a whole artifact piece by piece and closes it. It bypasses the page cache where the system supports
// that. It returns ErrDamaged if the content does not match the digest.
func readWhole(src io.ReadCloser, digest string, each func([]byte) error) error {
	defer src.Close()
	if onDisk, is := src.(*os.File); is {
		filesystem.DropCache(onDisk)
	}
	sum := sha256.New()
	buf := make([]byte, wire.PieceBytes)
	for {
		n, err := src.Read(buf)
		sum.Write(buf[:n])
		if n > 0 {
			if err := each(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return matches(sum, digest)
		} else if err != nil {
			return err
		}
	}
}

func matches(sum hash.Hash, digest string) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%w: its bytes have the sha256 %s", ErrDamaged, got)
	}
	return nil
}

// classifyReadError sets an artifact aside and returns ErrDamaged if a read error means that it is damaged.
func (s *Store) classifyReadError(f *file, err error) error {
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.shared && errors.Is(err, fs.ErrNotExist) {
		return s.forgetLost(f)
	}
	s.setAside(f, err)
	if errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
