package costmodel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Path returns the path in a folder of the model of a target, given by its fingerprint. The file contains LightGBM
// text. Its name includes the feature set, so that versions of the program with other features do not read it.
func Path(dir, fingerprint string, set *costfeatures.Set) (string, error) {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+", r))
	}
	if fingerprint == "" || fingerprint[0] == '.' || strings.ContainsFunc(fingerprint, odd) {
		return "", fmt.Errorf("cost model: %q is not a target's fingerprint", fingerprint)
	}
	return filepath.Join(dir, fingerprint+"."+set.Name+".txt"), nil
}

// Load reads the model of a target. It returns fs.ErrNotExist if there is no model.
func Load(dir, fingerprint string, set *costfeatures.Set) (*Model, error) {
	path, err := Path(dir, fingerprint, set)
	if err != nil {
		return nil, err
	}
	return ReadFile(path, set)
}

// ReadFile reads a model file for one of the feature sets. The error names the file.
func ReadFile(path string, sets ...*costfeatures.Set) (*Model, error) {
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

// Save stores the model of a target and replaces the previous one. It creates the folder if necessary.
func (m *Model) Save(dir, fingerprint string) error {
	path, err := Path(dir, fingerprint, m.set)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cost model: %w", err)
	}
	return filesystem.WriteFile(path, func(w io.Writer) error { return m.Write(w) })
}
