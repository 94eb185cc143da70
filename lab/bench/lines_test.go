package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type pair struct{ A, B int }

func TestRowsAreReadBackInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if rows, err := Read[pair](path); err != nil || rows != nil {
		t.Fatalf("no file: %v, %v", rows, err)
	}
	for _, batch := range [][]pair{{{1, 2}, {3, 4}}, {{5, 6}}} {
		if err := Append(path, batch); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := Read[pair](path); err != nil || !slices.Equal(rows, []pair{{1, 2}, {3, 4}, {5, 6}}) {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestBrokenLineIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte("{\"A\":1}\n{\"A\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[pair](path); err == nil || !strings.Contains(err.Error(), "rows.jsonl: line 2") {
		t.Errorf("%v", err)
	}
}
