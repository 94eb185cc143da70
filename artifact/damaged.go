package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Damaged artifacts are kept for whoever wants to know what befell them, the last few of them.
const (
	damagedName     = "damaged"
	damagedSuffix   = ".damaged"
	damagedFiles    = 8
	damagedMaxBytes = 256 << 20
)

// setAside takes a damaged artifact out of the store, unless it is another by now.
func (s *Store) setAside(f *file, cause error) {
	s.mu.Lock()
	if s.files[f.digest] != f {
		s.mu.Unlock()
		return
	}
	s.forget(f)
	s.stats.Dropped[droppedDamaged]++
	if err := s.moveAside(f); err != nil {
		s.Logger.Warn("damaged artifact not kept", "artifact", f.digest, "error", err)
		s.remove(f.path)
	}
	s.mu.Unlock()
	s.Logger.Error("artifact damaged: check the disk", "artifact", f.digest, "bytes", f.sizeBytes, "error", cause)
	s.Damaged(f.digest)
}

func (s *Store) moveAside(f *file) error {
	dir := filepath.Join(s.Dir, damagedName)
	if err := s.FS.MakeDir(dir); err != nil {
		return err
	}
	err := s.FS.Rename(f.path, filepath.Join(dir, f.digest+damagedSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is gone: that was the damage
	}
	if err != nil {
		return err
	}
	return s.boundAside(dir)
}

// boundAside removes the oldest of what was set aside.
func (s *Store) boundAside(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var kept []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var bytes int64
	for i, info := range kept {
		if bytes += info.Size(); i >= damagedFiles || bytes > damagedMaxBytes {
			s.remove(filepath.Join(dir, info.Name()))
		}
	}
	return nil
}
