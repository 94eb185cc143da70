package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	copying "github.com/containerd/continuity/fs"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Volume is a named folder of the machine that outlives containers.
type Volume struct {
	Name, Destination string
	ReadOnly          bool
}

// Path is where a volume's files are.
func (m *Machine) Path(volume string) string { return filepath.Join(m.Dir, "volumes", volume) }

// mountVolume makes a volume that is not there as Docker does: with the files, the owner and the mode of the folder of
// the image that it hides.
func (m *Machine) mountVolume(v Volume, root string) (specs.Mount, error) {
	mount, path := Bind(m.Path(v.Name), v.Destination, v.ReadOnly), m.Path(v.Name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return mount, err
	}
	there, err := os.ReadDir(path)
	if err != nil || len(there) > 0 {
		return mount, err
	}
	hidden := filepath.Join(root, v.Destination)
	if _, err := os.Lstat(hidden); errors.Is(err, fs.ErrNotExist) {
		return mount, nil
	}
	return mount, copying.CopyDir(path, hidden)
}

// byDepth orders mounts so that those in folders come after those of the folders.
func byDepth(mounts []specs.Mount) []specs.Mount {
	depth := func(m specs.Mount) int { return strings.Count(filepath.Clean(m.Destination), "/") }
	return slices.SortedStableFunc(slices.Values(mounts), func(a, b specs.Mount) int { return depth(a) - depth(b) })
}
