package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/board"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/backend/opencl"
	"github.com/tilth-dev/tilth/compiler/backend/reference"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// All are the backends.
func All() []backend.Backend {
	return []backend.Backend{cpu.Backend{}, cuda.Backend{}, gpusim.Backend{}, opencl.Backend{}, reference.Backend{}, board.Backend{}}
}

// Of is a target's backend. The error says that there is none, or what it misses in the target.
func Of(t *target.Target) (backend.Backend, error) {
	for _, b := range All() {
		if b.Name() == t.Backend {
			return b, b.Check(t)
		}
	}
	return nil, fmt.Errorf("backend %q is not known; this program has %s", t.Backend, strings.Join(names(), ", "))
}

func names() []string {
	var list []string
	for _, b := range All() {
		list = append(list, b.Name())
	}
	return list
}

// Space is the candidate schedules of a workload on a target, with the algorithms that numerics allow.
func Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) (*space.Space, error) {
	b, err := Of(t)
	if err != nil {
		return nil, err
	}
	return b.Space(w, t, numerics), nil
}

// Storage is how programs for a target store factors of products in float32, at a level of numerics, in a type;
// Invalid is the one that gains most.
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) (array.Storage, error) {
	b, err := Of(t)
	if err != nil {
		return array.Storage{}, err
	}
	return b.Storage(t, numerics, as), nil
}

// Target finds a target by name: one of a backend's, where there are several devices with one of them behind a colon,
// or the path of a JSON file as Target.Encode writes it. Zero threads means the target's own number; any other
// replaces that of a file.
func Target(name string, threads int) (*target.Target, error) {
	kind, device, chosen := strings.Cut(name, ":")
	for _, b := range All() {
		if slices.Contains(b.Targets(), name) {
			return b.Target(name, threads)
		}
		if by, ok := b.(backend.Chooser); ok && chosen && slices.Contains(b.Targets(), kind) {
			return by.Choose(kind, device, threads)
		}
	}
	if !target.IsFile(name) {
		return nil, fmt.Errorf("target: %q is not known; use %s, or the path of a .json file", name, strings.Join(Targets(), ", "))
	}
	t, err := target.Read(name, threads)
	if err != nil {
		return nil, err
	}
	if _, err := Of(t); err != nil {
		return nil, fmt.Errorf("target: %w (in %s)", err, name)
	}
	return t, nil
}

// Targets are the names of all targets.
func Targets() []string {
	var list []string
	for _, b := range All() {
		list = append(list, b.Targets()...)
	}
	return list
}

// FeatureSets are those of all backends.
func FeatureSets() []*features.Set {
	var list []*features.Set
	for _, b := range All() {
		list = append(list, b.Features().Set())
	}
	return list
}
