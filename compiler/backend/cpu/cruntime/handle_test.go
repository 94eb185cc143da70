package cruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// TestThreadsMayShareModels runs threads on one model and on models of their own, under ThreadSanitizer.
func TestThreadsMayShareModels(t *testing.T) {
	file := sanitized(t, append(ModelSources(), ModelHeaders()...), "handle_test")
	out, err := exec.Command(file).CombinedOutput()
	if strings.Contains(string(out), "FATAL: ThreadSanitizer") { // addresses are randomised and must stay so
		t.Skipf("ThreadSanitizer does not run here: %s", out)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// sanitized compiles testdata/NAME.c with other files and a linked ThreadSanitizer.
func sanitized(t *testing.T, files []toolchain.File, name string) string {
	t.Helper()
	tc, _ := toolchaintest.Native(t, 0)
	dir := t.TempDir()
	args := []string{"-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-pthread", "-I" + dir, filepath.Join("testdata", name+".c"), "-o", filepath.Join(dir, name)}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, []byte(f.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".c") {
			args = append(args, path)
		}
	}
	if out, err := exec.Command(tc.Path(), append(args, "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, name)
}
