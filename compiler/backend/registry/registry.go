package registry

import (
	"cmp"
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
	"github.com/tilth-dev/tilth/compiler/backend/vta"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// All returns the backends.
func All() []backend.Backend {
	return []backend.Backend{cpu.Backend{}, cuda.Backend{}, gpusim.Backend{}, opencl.Backend{}, reference.Backend{}, board.Backend{}, vta.Backend{}}
}

// Of returns a target's backend. It returns an error if the backend is unknown or the target lacks a required
// property.
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

// Space returns the candidate schedules of a workload on a target with the algorithms that numerics allow.
func Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) (*searchspace.Space, error) {
	b, err := Of(t)
	if err != nil {
		return nil, err
	}
	return b.Space(w, t, numerics), nil
}

// Default returns the schedule of a workload that is used without measurements, restricted to the algorithms
// that numerics allow.
func Default(w *expr.Workload, t *target.Target, numerics schedule.Numerics) (*schedule.Schedule, error) {
	s, err := Space(w, t, numerics)
	if err != nil {
		return nil, err
	}
	return s.Apply(s.Default())
}

// Storage returns how programs for a target store factors of float32 products, at a level of numerics and as a type.
// Invalid selects the type with the largest gain.
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) (array.Storage, error) {
	b, err := Of(t)
	if err != nil {
		return array.Storage{}, err
	}
	return b.Storage(t, numerics, as), nil
}

// Target finds a target by name or alias: that of a backend, with a device after a colon if the backend supports
// several, or the path of a JSON file written by Target.Encode. Zero threads selects the target's default; another
// number overrides the file's.
func Target(name string, threads int) (*target.Target, error) {
	resolved, err := Resolve(name)
	if err != nil {
		return nil, fmt.Errorf("target %.40q: %w", name, err)
	}
	name = resolved
	kind, device, chosen := strings.Cut(name, ":")
	for _, b := range All() {
		if !slices.ContainsFunc(b.Targets(), func(n target.Named) bool { return n.Name == kind }) {
			continue
		}
		by, ok := b.(backend.Chooser)
		switch {
		case !chosen:
			return b.Target(name, threads)
		case ok:
			return by.Choose(kind, device, threads)
		}
		return nil, fmt.Errorf("target: %s has no devices to choose from: leave :%.40s out", kind, device)
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

// Resolve returns the name that a target's name or alias stands for. Paths of files stay as they are.
func Resolve(name string) (string, error) {
	if target.IsFile(name) {
		return name, nil
	}
	kind, device, chosen := strings.Cut(name, ":")
	wanted := plain(kind)
	var known []string
	for _, n := range Targets() {
		for _, as := range append([]string{n.Name}, n.Aliases...) {
			if known = append(known, as); plain(as) != wanted {
				continue
			}
			if chosen {
				return n.Name + ":" + device, nil
			}
			return n.Name, nil
		}
	}
	return "", fmt.Errorf("unknown target%s 'tilth targets' lists all; a .json file describes another", cmp.Or(humanize.DidYouMean("", kind, known), ":"))
}

// plain returns a name without the differences that Resolve ignores: case, and underscores for hyphens.
func plain(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// Targets describes all targets by backend.
func Targets() []target.Named {
	var list []target.Named
	for _, b := range All() {
		list = append(list, b.Targets()...)
	}
	return list
}

// FeatureSets returns those of all backends.
func FeatureSets() []*costfeatures.Set {
	var list []*costfeatures.Set
	for _, b := range All() {
		list = append(list, b.Features().Set())
	}
	return list
}
