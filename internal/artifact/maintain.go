package artifact

import (
	"cmp"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/records"
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

// sweepEvery is how often expired files are dropped, and drops are logged.
const sweepEvery = time.Minute

// Run maintains a store until ctx ends: it drops expired files and verifies each stored artifact once per ScrubEvery,
// at no more than ScrubBytes per second.
func (s *Store) Run(ctx context.Context) {
	var scrub sync.WaitGroup
	defer scrub.Wait()
	if s.ScrubBytes > 0 {
		scrub.Go(func() { s.scrub(ctx) })
	}
	if s.shared {
		scrub.Go(func() { s.maintainShared(ctx) })
	}
	logged := newStats().Dropped
	for {
		s.sweep()
		logged = s.logDropped(logged)
		if retry.Sleep(ctx, sweepEvery) != nil {
			return
		}
	}
}

// sweep drops files that were not used, and uploads that were not resumed, for too long.
func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	s.forgetOthers()
	for _, a := range s.owners {
		for f := front(&a.artifacts); f != nil && s.Keep > 0 && now.Sub(f.used) >= s.Keep && s.mayGo(f); f = front(&a.artifacts) {
			s.drop(f, droppedUnused)
		}
		for f := front(&a.parts); f != nil && now.Sub(f.used) >= s.KeepParts; f = front(&a.parts) {
			s.drop(f, droppedPart)
		}
	}
}

// logDropped logs the drops since the counts in before, and returns the current counts.
func (s *Store) logDropped(before map[string]int64) map[string]int64 {
	now := s.Stats().Dropped
	var said []any
	for _, why := range []string{droppedForRoom, droppedUnused, droppedPart, droppedDamaged} {
		if n := now[why] - before[why]; n > 0 {
			said = append(said, why, n)
		}
	}
	if len(said) > 0 {
		s.Logger.Info("artifacts dropped", said...)
	}
	return now
}

// scrub verifies stored artifacts, the least recently verified first.
func (s *Store) scrub(ctx context.Context) {
	for ctx.Err() == nil {
		for _, f := range s.due() {
			err := s.verify(ctx, f, func(bytes int) error {
				return retry.Sleep(ctx, time.Duration(float64(bytes)/float64(s.ScrubBytes)*float64(time.Second)))
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.Logger.Warn("artifact not checked", "artifact", f.digest, "error", err)
			}
		}
		_ = retry.Sleep(ctx, sweepEvery)
	}
}

// due returns the artifacts that have to be verified now.
func (s *Store) due() (files []*file) {
	type due struct {
		*file
		checked time.Time
	}
	var all []due
	s.mu.Lock()
	before := s.Now().Add(-s.ScrubEvery)
	for _, f := range s.files {
		if !f.checked.After(before) && s.ownsPart(f.digest) {
			all = append(all, due{f, f.checked})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b due) int { return a.checked.Compare(b.checked) })
	for _, d := range all {
		files = append(files, d.file)
	}
	return files
}

// scan enters the artifacts and the parts of uploads in the folder, in the order of last use. It syncs all folder
// entries, since a killed process may have left some unsynced.
func (s *Store) scan() error {
	var found []*file
	err := s.blobs.List(s.Opening, func(b Blob) error {
		found = append(found, fileOf(b))
		return nil
	})
	if err != nil {
		return err
	}
	err = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == damagedName {
				return filepath.SkipDir
			}
			s.folders[path] = true
			return s.FS.SyncDir(path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if f := s.found(path, info); f != nil {
			found = append(found, f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *file) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	for _, f := range found {
		s.enter(f)
	}
	return nil
}

// found returns the part of an upload in a file of the folder; nil for other files. It removes an upload that was in
// progress when the process ended, since its extent on the disk is unknown.
func (s *Store) found(path string, info fs.FileInfo) *file {
	name := info.Name()
	if digest, owner, number, is := partName(name); is {
		s.number = max(s.number, number)
		return &file{path: path, sizeBytes: info.Size(), used: info.ModTime(), digest: digest, owner: owner, upload: &upload{}}
	}
	if strings.HasSuffix(name, uploadSuffix) || strings.HasSuffix(name, partSuffix) {
		s.remove(path)
	}
	return nil
}

// partName parses the file name of a part.
func partName(name string) (digest, owner string, number uint64, is bool) {
	name, is = strings.CutSuffix(name, partSuffix)
	fields := strings.Split(name, ".")
	if !is || len(fields) != 3 || !records.ValidDigest(fields[0]) {
		return "", "", 0, false
	}
	number, err := strconv.ParseUint(fields[2], 10, 64)
	return fields[0], fields[1], number, err == nil
}

// enter accounts for a file found by scan. Artifacts that were never verified are verified first.
func (s *Store) enter(f *file) {
	if f.upload == nil {
		s.add(f) // a former name has an earlier last use
		s.dropParts(f.digest)
		return
	}
	u := &upload{file: *f}
	u.room = roomOf(u.sizeBytes)
	s.addUpload(u)
	s.release(&u.file)
	if s.files[u.digest] != nil {
		s.drop(&u.file, droppedPart)
	}
}
