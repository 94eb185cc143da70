package toolchaintest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// programsBytes limits the directory of programs. One run of all tests creates about a tenth of it.
const programsBytes = 4 << 30

// Program compiles a C file, given as text, and returns the path of the program. It reuses the program of an
// earlier test run with the same text, compiler and flags; otherwise the code generator's tests would spend most of
// their time on recompilation. An error contains the compiler's output.
func Program(t testing.TB, compiler string, flags []string, text string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Fatal(err)
	}
	programs, key := keptPrograms(t), programKey(t, path, flags, text)
	program := filepath.Join(t.TempDir(), "program")
	if programs.Touch(key) && link(programs.Path(key), program) == nil && os.Chmod(program, 0o700) == nil {
		return program, nil
	}
	source := program + ".c"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(source)
	args := append(append([]string{}, flags...), source, "-o", program, "-lm")
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%.4000s", compiler, err, out)
	}
	keep(programs, key, program)
	return program, nil
}

func keptPrograms(t testing.TB) *filesystem.LRUDir {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir, err := filesystem.OpenLRU(filepath.Join(cache, "tilth-tests", "programs"), programsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func programKey(t testing.TB, compiler string, flags []string, text string) string {
	key, err := json.Marshal([]any{toolchain.Identity(compiler), flags, text})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// keep stores a program for later runs; one that cannot be stored is compiled again.
func keep(programs *filesystem.LRUDir, key, program string) {
	data, err := os.ReadFile(program)
	if err != nil {
		return
	}
	err = filesystem.WriteFile(programs.Path(key), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err == nil {
		_ = programs.Evict(key)
	}
}

// link creates a link to a file that remains when the original is evicted.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}
