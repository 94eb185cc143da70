package filesystem

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLeastRecentlyUsedFilesGo(t *testing.T) {
	d, err := OpenLRU(filepath.Join(t.TempDir(), "cache"), 25)
	if err != nil {
		t.Fatal(err)
	}
	for k, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(d.Path(name), make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(k), 0)
		if err := os.Chtimes(d.Path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if !d.Touch("a") || d.Touch("z") {
		t.Error("only a file that is there can be touched")
	}
	if err := d.Evict("c"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, err := os.Stat(d.Path(name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewestFileStaysWhateverItsSize(t *testing.T) {
	d, err := OpenLRU(t.TempDir(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Path("big"), make([]byte, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Evict("big"); err != nil {
		t.Fatal(err)
	}
	if !d.Touch("big") {
		t.Error("it is gone")
	}
}
