package costmodel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// Path is the file in a folder that has the model of a target, by its fingerprint. It is LightGBM's text; the name has
// the set of features, so that a version of the program with other features does not meet it.
func Path(dir, fingerprint string, set *features.Set) (string, error) {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+", r))
	}
	if fingerprint == "" || fingerprint[0] == '.' || strings.ContainsFunc(fingerprint, odd) {
		return "", fmt.Errorf("cost model: %q is not a target's fingerprint", fingerprint)
	}
	return filepath.Join(dir, fingerprint+"."+set.Name+".txt"), nil
}

// Load reads the model of a target. The error is fs.ErrNotExist when there is none.
func Load(dir, fingerprint string, set *features.Set) (*Model, error) {
	path, err := Path(dir, fingerprint, set)
	if err != nil {
		return nil, err
	}
	return ReadFile(path, set)
}

// ReadFile reads the file of a model of one of the sets, whoever wrote it. The error names the file.
func ReadFile(path string, sets ...*features.Set) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	defer f.Close()
	m, err := Read(f, sets...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Save keeps the model of a target, in place of the one before. The folder is made where it is missing.
func (m *Model) Save(dir, fingerprint string) error {
	path, err := Path(dir, fingerprint, m.set)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cost model: %w", err)
	}
	return atomicfile.Write(path, func(w io.Writer) error { return m.Write(w) })
}
