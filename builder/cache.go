package builder

import (
	"context"
	"fmt"
	"sync"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/lrudir"
)

// Cache keeps objects that many batches need, references and harnesses, in a folder, by what they are built from. The
// least recently used go when the folder outgrows its cap. It is safe for concurrent use, by several processes too.
type Cache struct {
	dir      *lrudir.Dir
	mu       sync.Mutex
	building map[string]chan struct{}
}

// OpenCache uses a folder, which is made when it is missing. No cap (0) means 1 GiB.
func OpenCache(dir string, capBytes int64) (*Cache, error) {
	files, err := lrudir.Open(dir, capBytes)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	return &Cache{dir: files, building: map[string]chan struct{}{}}, nil
}

// Get returns the path of a build's result, building it when it is not there. Callers that want the same result at the
// same time wait for one of them to build it. The file stays at least until a later call of Get.
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
