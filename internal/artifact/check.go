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

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/internal/wire"
)

// trust is how long an artifact is taken for whole after it was checked.
const trust = time.Hour

// Confirm says whether an artifact is there and whole. One that was checked within the hour, and not written to
// since, is taken for whole; others are read. One that is damaged is set aside, and is not there any more.
func (s *Store) Confirm(ctx context.Context, digest string) (there bool, err error) {
	for {
		f, err := s.lookUp(ctx, digest)
		if f == nil || err != nil {
			return false, err
		}
		if s.shared {
			if err := s.renew(ctx, f); errors.Is(err, fs.ErrNotExist) {
				continue // as another dropped it
			} else if err != nil {
				return false, err
			}
		}
		if !s.doubts(f) {
			return true, nil
		}
		ended, err := s.beginCheck(ctx, digest)
		if err != nil {
			return false, err
		}
		if ended == nil {
			continue // somebody else checked it
		}
		err = s.verify(ctx, f, func(int) error { return context.Cause(ctx) })
		ended()
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}
}

// doubts says whether an artifact is to be read before it is believed.
func (s *Store) doubts(f *file) bool {
	b := s.blobOf(f)
	return s.Now().Sub(b.Checked) >= trust || !s.blobs.Written(b).Equal(b.Used)
}

// beginCheck has the caller be the only one who checks an artifact, until ended is called. nil when somebody else
// did, and has ended.
func (s *Store) beginCheck(ctx context.Context, digest string) (ended func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.checking[digest]; done != nil {
		return nil, s.waitUnlocked(ctx, done)
	}
	done := make(chan struct{})
	s.checking[digest] = done
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.checking, digest)
		close(done)
	}, nil
}

// verify reads an artifact from the disk and compares it with its digest. pace is called after each piece, with its
// size, and ends the reading by an error. ErrDamaged when the artifact was set aside.
func (s *Store) verify(ctx context.Context, f *file, pace func(bytes int) error) error {
	b := s.blobOf(f)
	found := s.blobs.Written(b)
	src, err := s.read(ctx, f, 0)
	if err != nil {
		return s.judge(f, err)
	}
	err = readWhole(src, f.digest, func(b []byte) error {
		s.mu.Lock()
		s.stats.CheckedBytes += int64(len(b))
		s.mu.Unlock()
		return pace(len(b))
	})
	if err != nil {
		return s.judge(f, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[f.digest] != f {
		return nil // it went meanwhile
	}
	f.checked = s.Now()
	if f.stamp.Equal(b.Used) {
		f.stamp = found
	}
	s.blobs.Note(f.blob())
	return ctx.Err()
}

// readWhole reads all of an artifact, piece by piece, not from memory but from the disk where the system can be asked
// for that, and closes it. ErrDamaged when it has other bytes than its digest says.
func readWhole(src io.ReadCloser, digest string, each func([]byte) error) error {
	defer src.Close()
	if onDisk, is := src.(*os.File); is {
		disk.DropCache(onDisk)
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

// judge sets an artifact aside if an error of reading it says that it is damaged. That is then ErrDamaged.
func (s *Store) judge(f *file, err error) error {
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.shared && errors.Is(err, fs.ErrNotExist) {
		return s.lose(f)
	}
	s.setAside(f, err)
	if errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
