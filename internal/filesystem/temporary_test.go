package filesystem

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// writer starts a process that writes a file and blocks before it finishes. release unblocks it.
func writer(t *testing.T, path string) (process *exec.Cmd, release func()) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(os.Environ(), processEnv+"="+path, hangsEnv+"=1")
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return process, func() { _ = in.Close() }
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		t.Error(err)
	}
}

// names returns the names in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestFilesOfKilledWritersAreRemoved is a regression test: temporary files of killed processes stayed forever.
func TestFilesOfKilledWritersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	lives, release := writer(t, path)
	var killed []*exec.Cmd
	for range 3 {
		one, _ := writer(t, path)
		killed = append(killed, one)
	}
	for _, one := range killed {
		if err := one.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = one.Wait() // it was killed
	}
	writeText(t, path, "mine")
	if left := names(t, dir); len(left) != 2 { // including the live process's temporary file
		t.Errorf("there are %v", left)
	}
	release()
	if err := lives.Wait(); err != nil {
		t.Errorf("the one that lives: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != newText {
		t.Errorf("the file is %.20q, %v", text, err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

func TestUnrelatedFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, ".f.0.part")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".f.1.part"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeText(t, path, "mine")
	if left := names(t, dir); len(left) != 4 {
		t.Errorf("there are %v", left)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("another file is %q, %v", text, err)
	}
}

// TestManyWriteOneFileAtOnce checks that concurrent writers replace a file atomically, and do not remove each other's
// temporary files.
func TestManyWriteOneFileAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var all sync.WaitGroup
	for range maxAtOnce + 8 {
		all.Go(func() {
			for range 5 {
				writeText(t, path, newText)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(path); err != nil || string(text) != newText {
		t.Errorf("the file is %.20q, %v", text, err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}
