package reference

import (
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// name is the name of the backend, and of the target for this machine.
const name = "reference"

// Backend implements backend.Backend. Measuring, running and packaging are those of the cpu backend.
type Backend struct{ cpu.Backend }

// Name implements backend.Devices.
func (Backend) Name() string { return name }

// Targets implements backend.Devices.
func (Backend) Targets() []target.Named {
	return []target.Named{{Name: name, Description: "this machine, with slow scalar code"}}
}

// Target implements backend.Devices.
func (Backend) Target(_ string, threads int) (*target.Target, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	return t.WithBackend(name), nil
}

// Space implements backend.Backend.
func (Backend) Space(w *expr.Workload, t *target.Target, _ schedule.Numerics) *searchspace.Space {
	return searchspace.New(w, t, &searchspace.Sketch[struct{}]{Variants: []searchspace.Variant[struct{}]{{By: searchspace.Direct, Structure: only{w}}}})
}

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return featureSet }

// Print implements backend.Code.
func (Backend) Print(symbol string, k backend.Kernel, _ *target.Target) (backend.Printed, error) {
	s, err := codegen.Plain(k.Schedule.Workload)
	if err != nil {
		return nil, err
	}
	return codegen.Print(symbol, backend.Kernel{ID: k.ID, Schedule: s}, nil)
}

// Module implements backend.Code.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	source, err := codegen.Link(w, kernels, nil)
	if err != nil {
		return toolchain.Build{}, err
	}
	return toolchain.Build{Target: t, Form: toolchain.Kernels, Level: toolchain.KernelLevel,
		Sources: []toolchain.File{{Name: "kernels.c", Text: source}}}, nil
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(*target.Target) backend.Unit { return unit{codegen.NewUnit(nil)} }

// Dump implements backend.Code.
func (Backend) Dump(s *schedule.Schedule, _ *target.Target, without []string) ([]backend.Step, error) {
	plain, err := codegen.Plain(s.Workload)
	if err != nil {
		return nil, err
	}
	return codegen.Dump(plain, nil, without)
}

// unit prints kernels of a package.
type unit struct{ *codegen.Unit }

// Add implements backend.Unit.
func (u unit) Add(symbol, id string, s *schedule.Schedule) (backend.Info, error) {
	plain, err := codegen.Plain(s.Workload)
	if err != nil {
		return backend.Info{}, err
	}
	return u.Unit.Add(symbol, id, plain)
}

// only is the single schedule, without parameters. It implements searchspace.Structure.
type only struct{ workload *expr.Workload }

// Legal implements searchspace.Structure.
func (only) Legal(struct{}) error { return nil }

// Cost implements searchspace.Structure with one cycle per operation.
func (o only) Cost(struct{}) float64 { return o.workload.Flop() + o.workload.IntegerOps() + 1 }

// Apply implements searchspace.Structure.
func (only) Apply(*schedule.Schedule, struct{}) error { return nil }

// featureSet has only the cost: with one candidate there is no choice.
var featureSet = backend.CostAlone("reference-features-1")
