package builder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/tilth-dev/tilth/internal/lrudir"
)

// Kept are the objects of candidates built lately, since those that look best are measured again as finalists. The
// folder belongs to one process: the same trace is other code in another version of the compiler.
type Kept struct{ dir *lrudir.Dir }

// keptBytes bounds the objects kept. Those of a batch count once for each of its candidates.
const keptBytes = 256 << 20

// OpenKept uses a folder of this process's own, on the file system of its batches' folders.
func OpenKept(dir string) (*Kept, error) {
	files, err := lrudir.Open(dir, keptBytes)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	return &Kept{files}, nil
}

// add keeps the object of some candidates under their keys. One that cannot be kept is built again, nothing else.
func (k *Kept) add(object string, keys []string) {
	if k == nil {
		return
	}
	for _, key := range keys {
		_ = os.Link(object, k.dir.Path(key))
	}
	_ = k.dir.Evict(keys[0])
}

// find is the object of a candidate; "" when it is not kept.
func (k *Kept) find(key string) string {
	if k == nil || !k.dir.Touch(key) {
		return ""
	}
	return k.dir.Path(key)
}

// key tells a candidate of the batch from all others.
func (b Batch) key(candidate string) string {
	sum := sha256.Sum256([]byte(b.Workload.Digest() + " " + candidate + " " + string(b.Target.Encode())))
	return hex.EncodeToString(sum[:])
}

// reuse adds the objects that are kept of the batch's candidates to what was built, and returns the candidates that
// have none.
func (j *job) reuse(kernels []replayed) (rest []replayed) {
	var found []os.FileInfo
	for _, k := range kernels {
		object := j.compiler.Kept.find(j.batch.key(k.ID))
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
