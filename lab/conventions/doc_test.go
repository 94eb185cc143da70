package conventions_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// docLines bounds a package comment, which should be readable at a glance.
const docLines = 25

// TestEveryPackageHasAComment exempts test-only packages.
func TestEveryPackageHasAComment(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || strings.HasPrefix(name, ".") && name != ".." {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		code, comments := 0, 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code++
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				return err
			}
			if parsed.Doc != nil {
				comments++
				if name := filepath.Base(file); name != "doc.go" && parsed.Name.Name != "main" {
					t.Errorf("the package comment is in %s, want doc.go", file)
				}
				if n := strings.Count(parsed.Doc.Text(), "\n"); n > docLines {
					t.Errorf("the package comment in %s has %d lines, want at most %d", file, n, docLines)
				}
			}
		}
		if code > 0 {
			packages++
			if comments != 1 {
				t.Errorf("%s has %d package comments, want 1", path, comments)
			}
		}
		return nil
	})
	if err != nil || packages < 90 {
		t.Errorf("%d packages were checked: %v", packages, err)
	}
}
