package aot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// OwnKernel describes the user kernel of a task.
type OwnKernel struct {
	Name string `json:"name"`
	// Digest is the SHA-256 of its text, including the source.
	Digest string `json:"sha256"`
	// Point is the values of its knobs: KNOB=value, separated by blanks.
	Point string `json:"point"`
	// Libraries lists the libraries that it calls, which must be installed where the package runs.
	Libraries []Library `json:"libraries,omitempty"`
}

// Library is a shared library that a package's kernel calls.
type Library struct {
	// SOName is its name for the dynamic linker.
	SOName string `json:"soname"`
	// Version is the version that the kernel was measured with. Opening the package fails with another one.
	Version string `json:"version"`
}

// String returns the library with its version.
func (l Library) String() string { return l.SOName + " " + l.Version }

// ownOf returns the manifest entry of a schedule's user kernel, or nil.
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

// Libraries returns the libraries that the package's kernels call, each once.
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

// unloadable returns the error for code that failed to load, with the remedy if a library is missing.
func (m *Manifest) unloadable(err error) error {
	for _, l := range m.Libraries() {
		if strings.Contains(err.Error(), l.SOName) {
			return fmt.Errorf("it calls %s, which cannot be loaded: install the system's package that has it, or compile the model on this machine: %w", l, err)
		}
	}
	return err
}
