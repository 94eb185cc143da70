package filesystem

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// LRUDir is a bounded cache folder. The modification time of a file is its last use. It is safe for concurrent
// use, also by several processes, if files are created by renaming.
type LRUDir struct {
	path     string
	capBytes int64
	mu       sync.Mutex
}

// OpenLRU opens the folder at path and creates it if necessary. A cap of 0 means 1 GiB.
func OpenLRU(path string, capBytes int64) (*LRUDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &LRUDir{path: path, capBytes: cmp.Or(capBytes, 1<<30)}, nil
}

// Path returns the path of a file by name.
func (d *LRUDir) Path(name string) string { return filepath.Join(d.path, name) }

// Touch marks a file as used and reports whether it exists.
func (d *LRUDir) Touch(name string) bool {
	now := time.Now()
	return os.Chtimes(d.Path(name), now, now) == nil
}

// Evict removes the least recently used files until the cap is met. It keeps the newest file regardless of its size.
func (d *LRUDir) Evict(newest string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	files, total, err := d.files()
	if err != nil {
		return err
	}
	for _, info := range files {
		if total <= d.capBytes {
			return nil
		}
		if info.Name() == newest {
			continue
		}
		if err := os.Remove(d.Path(info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making room in the cache: %w", err)
		}
		total -= info.Size()
	}
	return nil
}

// files returns the files of the folder, least recently used first, and their total size in bytes.
func (d *LRUDir) files() (files []fs.FileInfo, total int64, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the cache: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted, or a scratch folder
		}
		files = append(files, info)
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return files, total, nil
}
