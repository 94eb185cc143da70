package conventions_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var inTicks = regexp.MustCompile("`([a-z][a-z0-9_./]*)`")

// TestPathsInContributingExist checks that the files and folders in the table of CONTRIBUTING.md exist.
func TestPathsInContributingExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| a") {
			continue
		}
		rows++
		named := inTicks.FindAllStringSubmatch(line, -1)
		if len(named) < 2 {
			t.Errorf("a row names no example: %s", line)
		}
		for _, m := range named {
			if strings.HasPrefix(m[1], "tuner.") { // an interface
				continue
			}
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("the table names %s: %v", m[1], err)
			}
		}
	}
	if rows < 12 {
		t.Errorf("the table has %d rows", rows)
	}
}
