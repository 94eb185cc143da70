package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type row struct {
	Name string `json:"name"`
	Took int    `json:"took"`
}

func (r row) Same(o row) bool { return r.Name == o.Name }

func open(t *testing.T, folder, machine string) *File[row] {
	t.Helper()
	f, err := Open[row](folder, machine, "times")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNewestRowsOfEachMachineAreKept checks that a later run only replaces rows of its machine.
func TestNewestRowsOfEachMachineAreKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	if list, err := Machines(folder, "times"); err != nil || len(list) > 0 {
		t.Fatalf("%v, %v before anything was measured", list, err)
	}
	for _, add := range []struct {
		machine string
		rows    []row
	}{{"old", []row{{"a", 1}, {"b", 2}}}, {"new", []row{{"a", 3}}}, {"old", []row{{"a", 4}, {"c", 5}}}} {
		if err := open(t, folder, add.machine).Add(add.rows); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := Machines(folder, "times"); err != nil || !slices.Equal(list, []string{"new", "old"}) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := Machines(folder, "others"); err != nil || len(list) > 0 {
		t.Errorf("%v, %v have another benchmark's rows", list, err)
	}
	if got, want := open(t, folder, "old").Rows, []row{{"a", 4}, {"b", 2}, {"c", 5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := open(t, folder, "new").Rows; !slices.Equal(got, []row{{"a", 3}}) {
		t.Errorf("%v", got)
	}
}

func TestDamagedFileIsNamed(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "old", "times.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{\"name\":\"a\"}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[row](folder, "old", "times"); err == nil || !strings.Contains(err.Error(), path+": line 2") {
		t.Errorf("%v", err)
	}
}
