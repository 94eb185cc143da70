package conventions_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// architectureLines is the maximum length of docs/architecture.md, which should be readable in one sitting.
const architectureLines = 300

func TestArchitectureIsReadAtOneSitting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > architectureLines {
		t.Errorf("docs/architecture.md has %d lines, want at most %d", n, architectureLines)
	}
}
