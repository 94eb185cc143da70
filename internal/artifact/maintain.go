package artifact

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
)

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
