package filesystem

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/chaos/powercut"
)

const (
	processEnv = "TILTH_TEST_ATOMICFILE"
	// hangsEnv makes that program block before it finishes.
	hangsEnv = "TILTH_TEST_ATOMICFILE_HANGS"
)

// TestMain lets this binary act as a program that writes a file.
func TestMain(m *testing.M) {
	path := os.Getenv(processEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	err := WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, newText)
		if os.Getenv(hangsEnv) != "" {
			fmt.Println("writes")
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// oldText is replaced by newText.
var oldText, newText = strings.Repeat("old", 3000), strings.Repeat("new", 4000)

func TestFileThatWasWrittenOutlivesAPowerCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "file")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(oldText), 0o644)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"="+path)
	trace, err := powercut.Run(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	err = trace.Everywhere(1, 50, "data", func(left string, at int) error {
		b, err := os.ReadFile(filepath.Join(left, "file"))
		if text := string(b); err == nil && text != newText && (text != oldText || at == trace.Len()) {
			return fmt.Errorf("%d bytes are there: %.20q", len(b), b)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
