package filesystem

import (
	"path/filepath"
	"testing"
)

func TestFreeBytes(t *testing.T) {
	dir := t.TempDir()
	if free, err := FreeBytes(dir); err != nil || free <= 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	if _, err := FreeBytes(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder that is not there has free space")
	}
}
