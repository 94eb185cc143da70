package filesystem

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLockHasOneHolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".lock")
	for range 2 {
		held, err := TryLock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
			t.Errorf("a second holder: %v", err)
		}
		if err := held.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := TryLock(filepath.Join(dir, "none", ".lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}

// TestLockThatIsRemovedKeepsOneHolder covers waiters that opened the lock's file just before its holder removed it.
func TestLockThatIsRemovedKeepsOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for taken := 0; taken < 200; {
				held, err := TryLock(path)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("it has %d holders", n)
				}
				holders.Add(-1)
				taken++
				if err := held.Unlock(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
