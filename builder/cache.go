package builder

import (
	"context"
	"fmt"
	"sync"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/disk"
)

// Cache stores objects that many batches need, such as references and harnesses, in a folder, keyed by their
// inputs. It evicts the least recently used when the folder exceeds its cap. It is safe for concurrent use,
// also by several processes.
type Cache struct {
	dir      *disk.LRUDir
	mu       sync.Mutex
	building map[string]chan struct{}
}

// OpenCache opens a folder and creates it if necessary. A cap of 0 means 1 GiB.
func OpenCache(dir string, capBytes int64) (*Cache, error) {
	files, err := disk.OpenLRU(dir, capBytes)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	return &Cache{dir: files, building: map[string]chan struct{}{}}, nil
}

// Get returns the path of a build's result and builds it if it is missing. Concurrent callers share one
// build. The file exists at least until a later call of Get.
func (c *Cache) Get(ctx context.Context, tc *toolchain.Toolchain, b toolchain.Build) (string, error) {
	key := tc.Key(b)
	path := c.dir.Path(key)
	for {
		if c.dir.Touch(key) {
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
	if err := c.dir.Evict(key); err != nil {
		return "", fmt.Errorf("builder: %w", err)
	}
	return path, nil
}

func (c *Cache) finish(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.building[key])
	delete(c.building, key)
}
