package document

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPartsAreReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := begin("other") + "stays\n" + end("other")
	write(other + "before\n" + begin("table") + "old\n" + end("table") + "after\n")
	if err := Splice(path, "table", "new\n"); err != nil {
		t.Fatal(err)
	}
	want := other + "before\n" + begin("table") + "new\n\n" + end("table") + "after\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	if err := Splice(path, "chart", "new\n"); err == nil {
		t.Error("a part that is not there was replaced")
	}
}
