package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Cache stores objects that many batches need, such as references and harnesses, in a folder, keyed by their
// inputs. It evicts the least recently used when the folder exceeds its cap. It is safe for concurrent use,
// also by several processes.
type Cache struct {
	dir      *filesystem.LRUDir
	mu       sync.Mutex
	building map[string]chan struct{}
}

// OpenCache opens a folder and creates it if necessary. A cap of 0 means 1 GiB.
func OpenCache(dir string, capBytes int64) (*Cache, error) {
	files, err := filesystem.OpenLRU(dir, capBytes)
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

// ObjectCache caches the objects of recently built candidates, because the fastest ones are measured again as
// finalists. The folder belongs to one process, because another version of the compiler generates other code
// for the same trace.
type ObjectCache struct{ dir *filesystem.LRUDir }

// objectCacheBytes bounds the cached objects. The object of a batch counts once per candidate.
const objectCacheBytes = 256 << 20

// OpenObjectCache opens a folder private to this process, on the file system of the batches' folders.
func OpenObjectCache(dir string) (*ObjectCache, error) {
	files, err := filesystem.OpenLRU(dir, objectCacheBytes)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	return &ObjectCache{files}, nil
}

// add stores the object of some candidates under their keys. Failures cost another build.
func (k *ObjectCache) add(object string, keys []string) {
	if k == nil {
		return
	}
	for _, key := range keys {
		_ = os.Link(object, k.dir.Path(key))
	}
	_ = k.dir.Evict(keys[0])
}

// find returns the object of a candidate, or "".
func (k *ObjectCache) find(key string) string {
	if k == nil || !k.dir.Touch(key) {
		return ""
	}
	return k.dir.Path(key)
}

// key identifies a candidate of the batch.
func (b Batch) key(candidate string) string {
	sum := sha256.Sum256([]byte(b.Workload.Digest() + " " + candidate + " " + string(b.Target.Encode())))
	return hex.EncodeToString(sum[:])
}

// reuse adds the cached objects of the batch's candidates to the result and returns the other candidates.
func (j *job) reuse(kernels []replayed) (rest []replayed) {
	var found []os.FileInfo
	for _, k := range kernels {
		object := j.compiler.ObjectCache.find(j.batch.key(k.ID))
		info, err := os.Stat(object)
		if err != nil {
			rest = append(rest, k)
			continue
		}
		if !slices.ContainsFunc(found, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
			found, j.built.Objects = append(found, info), append(j.built.Objects, object)
		}
	}
	return rest
}
