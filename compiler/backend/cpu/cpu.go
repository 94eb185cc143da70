package cpu

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// Backend implements backend.Backend.
type Backend struct{}

// Name implements backend.Devices.
func (Backend) Name() string { return target.Default }

// Targets implements backend.Devices.
func (Backend) Targets() []target.Named { return target.Presets() }

// Target implements backend.Devices.
func (Backend) Target(name string, threads int) (*target.Target, error) {
	return target.Parse(name, threads)
}

// Choose implements backend.Chooser. It selects a class of this machine's cores.
func (Backend) Choose(named, class string, threads int) (*target.Target, error) {
	if named != target.Here {
		return nil, fmt.Errorf("target: %s has no classes of cores to choose from: only %s has", named, target.Here)
	}
	return target.Choose(class, threads)
}

// Present implements backend.Devices.
func (Backend) Present(t *target.Target) error {
	machine, err := target.Native(t.Threads())
	if err != nil {
		return err
	}
	return t.RunsOn(machine)
}

// Check implements backend.Devices.
func (Backend) Check(*target.Target) error { return nil }

// Space implements backend.Backend.
func (Backend) Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	return sketch.New(w, t, numerics)
}

// Storage implements backend.Backend.
func (Backend) Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	return sketch.Storage(t, numerics, as)
}

// Clock implements backend.Backend.
func (Backend) Clock(*target.Target) float64 { return microarch.Clock }

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return cost.Features{} }

// Print implements backend.Code.
func (Backend) Print(symbol string, k backend.Kernel, t *target.Target) (backend.Printed, error) {
	return codegen.Print(symbol, k, t)
}

// Module implements backend.Code.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	source, err := codegen.Link(w, kernels, t)
	if err != nil {
		return toolchain.Build{}, err
	}
	b := toolchain.Build{Target: t, Form: toolchain.Kernels, Level: toolchain.KernelLevel,
		Sources: []toolchain.File{{Name: "kernels.c", Text: source}}}
	var written []*userkernel.Kernel
	for _, k := range kernels {
		p := k.(*codegen.Printed)
		b.AddOwn(p.Own())
		if kernel := p.Kernel(); kernel != nil {
			written = append(written, kernel)
		}
	}
	check, libraries, err := userkernel.Check(written, "")
	if err != nil {
		return toolchain.Build{}, err
	}
	b.AddLibraries(libraries, check)
	return b, nil
}

// referenceLevel lets the compiler vectorise plain loops. Large workloads still take seconds.
const referenceLevel = 3

// Reference implements backend.Code.
func (Backend) Reference(w *expr.Workload, t *target.Target) (toolchain.Build, error) {
	source, err := codegen.Reference(w)
	if err != nil {
		return toolchain.Build{}, err
	}
	return toolchain.Build{Target: t, Form: toolchain.Kernels, Level: referenceLevel,
		Sources: []toolchain.File{{Name: "reference.c", Text: source}}}, nil
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(t *target.Target) backend.Unit { return codegen.NewUnit(t) }

// Dump implements backend.Code.
func (Backend) Dump(s *schedule.Schedule, t *target.Target, without []string) ([]backend.Step, error) {
	return codegen.Dump(s, t, without)
}

// Harness implements backend.Programs.
func (Backend) Harness(t *target.Target) toolchain.Build { return cruntime.Harness(t) }

// Device implements backend.Programs.
func (Backend) Device(*target.Target) *backend.Device { return nil }

// Runtime implements backend.Programs.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return backend.Runtime{Sources: cruntime.ModelSources(), Headers: cruntime.ModelHeaders(), Interface: cruntime.Interface()}
}
