package farm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"
)

// tempDir is a folder that is removed with its process. The next process removes the folder of a killed one.
type tempDir struct {
	dir   string
	claim *os.File // locked while the process lives
}

// newTempDir creates a folder in parent whose name begins with prefix. It first removes such folders that no
// process holds, except those of other users.
func newTempDir(parent, prefix string) (*tempDir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		claim, err := hold(dir)
		if errors.Is(err, errTaken) {
			continue // another process removed it before it was locked
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		sweep(parent, prefix)
		return &tempDir{dir: dir, claim: claim}, nil
	}
}

// errTaken is returned by hold if another process holds or has removed the folder.
var errTaken = errors.New("folder is taken")

// hold locks a folder. If it returns no error, the folder still exists.
func hold(dir string) (*os.File, error) {
	f, err := lockFolder(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, errors.Join(errTaken, f.Close())
	}
	return f, nil
}

// lockFolder opens and locks a folder. It returns EWOULDBLOCK if another process holds it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes folders of killed processes, on a best-effort basis.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if claim, err := hold(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = claim.Close()
		}
	}
}

// remove removes the folder.
func (p *tempDir) remove() error {
	if p == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(p.dir), p.claim.Close())
}

const (
	// minMemoryBytes is the memory that a tracker may use before garbage collection becomes more frequent.
	// A tracker with 10,000 connected agents has more than half of it in use.
	minMemoryBytes = 960 << 20
	// memoryInterval is the interval at which the limit is adjusted.
	memoryInterval = 5 * time.Second
)

// limitMemory keeps the memory of the process below a limit, or below five quarters of the memory in use if
// that is more, until ctx ends. By default the collector would allow twice the memory in use, including
// stacks. GOMEMLIMIT overrides this limit.
func limitMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetMemoryLimit(minMemoryBytes)
	defer debug.SetMemoryLimit(before)
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(inUse)
		used := int64(inUse[0].Value.Uint64() + inUse[1].Value.Uint64())
		debug.SetMemoryLimit(max(minMemoryBytes, used+used/4))
	}
}
