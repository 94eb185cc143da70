package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFoldersAreThoseOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf":      "include more/*.conf missing.conf\n/usr/local/last\n",
		"more/a.conf":     "# of CUDA\n/usr/local/cuda/lib64/ \n\nrelative\nhwcap 1 nosegneg\n",
		"more/b.conf":     "/opt/b # a remark\ninclude *.conf\n", // also matches itself
		"more/ignored.sh": "/opt/ignored\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := loaderFolders(filepath.Join(dir, "ld.so.conf"))
	if want := []string{"/usr/local/cuda/lib64", "/opt/b", "/usr/local/last"}; !slices.Equal(got, want) {
		t.Errorf("folders are %q, want %q", got, want)
	}
	if got := loaderFolders(filepath.Join(dir, "missing.conf")); len(got) > 0 {
		t.Errorf("a file that is not there names %q", got)
	}
}

func TestFirstFolderWithALibraryHasIt(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for path, text := range map[string]string{filepath.Join(one, "libx.so"): "", filepath.Join(two, "libx.so.1"): "a library"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(one, "libx.so.1"), 0o755); err != nil { // not a library
		t.Fatal(err)
	}
	folders := []string{filepath.Join(dir, "missing"), one, two}
	if got := findLibrary(folders, "libx.so.1"); got != filepath.Join(two, "libx.so.1") {
		t.Errorf("the library is %q", got)
	}
	if got := findLibrary(folders, "libx.so.2"); got != "" {
		t.Errorf("a library that is not there is %q", got)
	}
}
