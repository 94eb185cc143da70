package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOwnMemoryIsTheLeastThatAGroupAllows(t *testing.T) {
	root := t.TempDir()
	for dir, limit := range map[string]string{"": "4000", "a": "max", "a/b": "3000", "c": "9000"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "memory.max"), []byte(limit+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]int64{
		"0::/a/b\n": 3000, "1:cpu:/a/b\n0::/a\n": 4000, "0::/c\n": 4000, "0::/../..\n": 4000, "": 8000, "nonsense": 8000,
	} {
		if got := ownMemory(8000, root, groups); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
	if got := ownMemory(0, root, "0::/a/b"); got != 3000 {
		t.Errorf("of a machine that does not tell: %d", got)
	}
	if got := OwnMemory(); got <= 0 || got > MachineMemory() {
		t.Errorf("this process may have %d of %d", got, MachineMemory())
	}
}
