package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Cache keeps objects that many batches need, references and harnesses, in a folder, by what they are built from. The
// least recently used go when the folder outgrows its cap. It is safe for concurrent use, by several processes too.
type Cache struct {
	dir      string
	capBytes int64
	mu       sync.Mutex
	building map[string]chan struct{}
}

// OpenCache uses a folder, which is made when it is missing. No cap (0) means 1 GiB.
func OpenCache(dir string, capBytes int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("builder: making the cache: %w", err)
	}
	if capBytes == 0 {
		capBytes = 1 << 30
	}
	return &Cache{dir: dir, capBytes: capBytes, building: map[string]chan struct{}{}}, nil
}

// Get returns the path of a build's result, building it when it is not there. Callers that want the same result at the same
// time wait for one of them to build it. The file stays at least until a later call of Get.
func (c *Cache) Get(ctx context.Context, tc *toolchain.Toolchain, b toolchain.Build) (string, error) {
	key := tc.Key(b)
	path := filepath.Join(c.dir, key)
	for {
		if touch(path) {
			return path, nil
		}
		c.mu.Lock()
		done, busy := c.building[key]
		if !busy {
			c.building[key] = make(chan struct{})
		}
		c.mu.Unlock()
		if !busy {
			break
		}
		select {
		case <-done:
		case <-ctx.Done():
			return "", fmt.Errorf("builder: waiting for a build of the same object: %w", context.Cause(ctx))
		}
	}
	defer c.finish(key)
	if err := tc.Build(ctx, b, path); err != nil {
		return "", err
	}
	return path, c.evict(key)
}

func (c *Cache) finish(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.building[key])
	delete(c.building, key)
}

// touch marks a file as used and reports whether it is there.
func touch(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}

// evict removes the least recently used files until the cap is kept; the newest one stays whatever its size.
func (c *Cache) evict(newest string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("builder: reading the cache: %w", err)
	}
	var files []fs.FileInfo
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone, or a build's scratch folder
		}
		files = append(files, info)
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if total <= c.capBytes || info.Name() == newest {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("builder: making room in the cache: %w", err)
		}
		total -= info.Size()
	}
	return nil
}
