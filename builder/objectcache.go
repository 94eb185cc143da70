package builder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/tilth-dev/tilth/internal/disk"
)

// ObjectCache caches the objects of recently built candidates, because the fastest ones are measured again as
// finalists. The folder belongs to one process, because another version of the compiler generates other code
// for the same trace.
type ObjectCache struct{ dir *disk.LRUDir }

// objectCacheBytes bounds the cached objects. The object of a batch counts once per candidate.
const objectCacheBytes = 256 << 20

// OpenObjectCache opens a folder private to this process, on the file system of the batches' folders.
func OpenObjectCache(dir string) (*ObjectCache, error) {
	files, err := disk.OpenLRU(dir, objectCacheBytes)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	return &ObjectCache{files}, nil
}

// add stores the object of some candidates under their keys. Failures are ignored: the object is then built
// again.
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
		if !contains(found, info) {
			found, j.built.Objects = append(found, info), append(j.built.Objects, object)
		}
	}
	return rest
}

func contains(files []os.FileInfo, f os.FileInfo) bool {
	for _, other := range files {
		if os.SameFile(other, f) {
			return true
		}
	}
	return false
}
