package farm

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTemporaryFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	alive, err := newTempDir(parent, "farm-")
	if err != nil {
		t.Fatal(err)
	}
	killed, err := newTempDir(parent, "farm-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed.dir, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	killed.claim.Close() // as when a process is killed
	other := filepath.Join(parent, "agent-board")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := newTempDir(parent, "farm-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.dir); !os.IsNotExist(err) {
		t.Errorf("the killed one's folder is still there: %v", err)
	}
	for _, dir := range []string{alive.dir, next.dir, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []*tempDir{alive, next} {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v; want agent-board", left, err)
	}
}
