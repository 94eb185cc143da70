package filesystem

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var log bytes.Buffer
	writes := 0
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// Two writes within a clock tick of the file system would look alike.
		writes++
		at := time.Unix(int64(1000*writes), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	reads := 0
	read := func() (string, error) {
		reads++
		b, err := os.ReadFile(path)
		if strings.HasPrefix(string(b), "bad") {
			return "", errors.New("bad")
		}
		return string(b), err
	}
	if _, err := Reload(slog.New(slog.NewTextHandler(&log, nil)), read, path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing at first: %v", err)
	}
	write("one")
	f, err := Reload(slog.New(slog.NewTextHandler(&log, nil)), read, path)
	if err != nil {
		t.Fatal(err)
	}
	step := func(text, want string) {
		t.Helper()
		if text != "" {
			write(text)
		}
		before := reads
		for range 3 {
			if got := f.Get(); got != want {
				t.Errorf("after %q the value is %q, want %q", text, got, want)
			}
		}
		if text != "" && reads > before+1 {
			t.Errorf("after %q the file was read %d times", text, reads-before)
		}
	}
	step("", "one")
	step("two", "two")
	step("bad", "two")
	step("six", "six")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	step("", "six")
	step("ten", "ten")
	if n := strings.Count(log.String(), "going on with the last good ones"); n != 2 {
		t.Errorf("the log complains %d times, want 2:\n%s", n, log.String())
	}
}
