package aot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// OwnKernel says which kernel that somebody wrote computes a task.
type OwnKernel struct {
	Name string `json:"name"`
	// Digest is the sha256 of its text, source included.
	Digest string `json:"sha256"`
	// Point is the values of its knobs, KNOB=value separated by blanks.
	Point string `json:"point"`
	// Libraries are those that it calls, and that must be installed where the package runs.
	Libraries []Library `json:"libraries,omitempty"`
}

// Library is a shared library that a package's kernel calls.
type Library struct {
	// SOName is the name by which the dynamic linker finds it.
	SOName string `json:"soname"`
	// Version is what the kernel was measured with. Another one is refused when the package is opened.
	Version string `json:"version"`
}

// String is the library with its version.
func (l Library) String() string { return l.SOName + " " + l.Version }

// ownOf is what a manifest says of a schedule's own kernel; nil where it has none.
func ownOf(s *schedule.Schedule) *OwnKernel {
	if s.Own == nil {
		return nil
	}
	k := &OwnKernel{Name: s.Own.Kernel.Name, Digest: s.Own.Kernel.Digest(), Point: s.Own.Point()}
	for _, l := range s.Own.Kernel.Libraries {
		k.Libraries = append(k.Libraries, Library{l.SOName, l.Version})
	}
	return k
}

// Libraries are those that the package's kernels call, each once.
func (m *Manifest) Libraries() (list []Library) {
	for _, t := range m.Tasks {
		if t.Kernel == nil {
			continue
		}
		for _, l := range t.Kernel.Libraries {
			if !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

// unloadable is the error with which the code of a package was not loaded, with the remedy where it is one of its
// libraries that is missing.
func (m *Manifest) unloadable(err error) error {
	for _, l := range m.Libraries() {
		if strings.Contains(err.Error(), l.SOName) {
			return fmt.Errorf("it calls %s, which cannot be loaded: install the system's package that has it, or compile the model on this machine: %w", l, err)
		}
	}
	return err
}
