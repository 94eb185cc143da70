package prose_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docLines is the most that a package's doc.go may have.
const docLines = 25

// TestEveryPackageSaysWhatItIsFor in a doc.go that can be read at a glance. Generated packages and those of tests
// alone have none.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || name == "proto" || strings.HasPrefix(name, ".") && name != ".." {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		code := 0
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				code++
			}
		}
		if code == 0 {
			return nil
		}
		packages++
		text, err := os.ReadFile(filepath.Join(path, "doc.go"))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if n := strings.Count(string(text), "\n"); n > docLines || !strings.HasPrefix(string(text), "// ") {
			t.Errorf("%s/doc.go has %d lines, or does not begin with what the package is for; want at most %d", path, n, docLines)
		}
		return nil
	})
	if err != nil || packages < 100 {
		t.Errorf("%d packages were looked at: %v", packages, err)
	}
}
