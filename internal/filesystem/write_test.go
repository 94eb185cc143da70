package filesystem

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPrivateFileKeepsItsOwner is a regression test: a change by root made tokens unreadable for the service.
func TestPrivateFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chown(path, 1234, 1235)); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivateFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 1235 || info.Mode().Perm() != 0o600 || info.Size() != 3 {
		t.Errorf("the file is %v of %d:%d", info.Mode(), s.Uid, s.Gid)
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first", "second, longer"} {
		if err := WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("file has %q, %v; want %q", got, err, text)
		}
	}
}

func TestFailedWriteLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFile(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half") // a partial write must not matter
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "before" {
		t.Errorf("file has %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("folder has %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestFailedSyncLeavesWhatWasThere checks that a failed sync discards the new file. A later sync may succeed
// although data were lost.
func TestFailedSyncLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	fill := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	err := write(path, fill, func(f *os.File, _ fs.FileInfo) error { return f.Close() }) // makes the sync fail
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "before" {
		t.Errorf("file has %q", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("folder has %v", left)
	}
}

func TestWriteNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ path, want string }{
		"no folder": {filepath.Join(dir, "none", "f"), "write " + dir + "/none/f: no such file or directory"},
		"a folder":  {dir, "write " + dir + ": it is a folder: name a file"},
		"full disk": {"/dev/full", "write /dev/full: no space left on device"},
	} {
		err := WriteFile(c.path, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestFilesThatCannotBeWrittenAreKnownBefore(t *testing.T) {
	dir := t.TempDir()
	file, locked := filepath.Join(dir, "file"), filepath.Join(dir, "locked")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(locked, 0o500)); err != nil {
		t.Fatal(err)
	}
	remedy := ": name a file in a folder that can be written"
	for path, want := range map[string]string{
		file: "", filepath.Join(dir, "new"): "", "new": "", "/dev/null": "",
		dir:                           "write " + dir + ": it is a folder: name a file",
		filepath.Join(dir, "no", "f"): "write " + dir + "/no/f: folder " + dir + "/no: no such file or directory" + remedy,
		filepath.Join(file, "f"):      "write " + file + "/f: folder " + file + ": not a directory" + remedy,
		"/proc/f":                     "write /proc/f: folder /proc: no such file or directory" + remedy,
		filepath.Join(locked, "f"):    "write " + locked + "/f: folder " + locked + ": permission denied" + remedy,
	} {
		if path == filepath.Join(locked, "f") && os.Geteuid() == 0 {
			want = "" // nothing is denied to root
		}
		if err := CheckWritable(path); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}
