package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFoldersAreMadeWithThoseAbove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := MakeFolder(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("made %v, %v", info, err)
		}
	}
	if err := MakeFolder("/", 0o700); err != nil {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := MakeFolder(file, 0o700); !errors.Is(err, fs.ErrExist) {
		t.Errorf("where a file is: %v", err)
	}
	if err := MakeFolder(filepath.Join(file, "in"), 0o700); err == nil {
		t.Error("a folder was made in a file")
	}
}
