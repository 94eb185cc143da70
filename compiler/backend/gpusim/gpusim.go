package gpusim

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	cpucode "github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

const (
	// name is the name of the backend, targetName that of this machine as a simulated GPU.
	name       = "gpusim"
	targetName = "gpu-sim"
)

// card is the simulated GPU, of the size of an H100.
var card = target.GPU{
	Arch: "sm_90a", Model: "simulated", Simulated: true, Multiprocessors: 132,
	WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
	ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10,
	BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 50 << 20,
}

// Backend implements backend.Backend. Measuring, running and packaging are those of the cpu backend.
type Backend struct{ cpu.Backend }

// Name implements backend.Devices.
func (Backend) Name() string { return name }

// Targets implements backend.Devices.
func (Backend) Targets() []target.Named {
	return []target.Named{{Name: targetName, Description: "a simulated GPU, which finds mistakes in kernels"}}
}

// Target implements backend.Devices.
func (Backend) Target(_ string, threads int) (*target.Target, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	t = t.WithBackend(name).Clone()
	gpu := card
	t.GPU = &gpu
	return t, nil
}

// Check implements backend.Devices.
func (Backend) Check(t *target.Target) error {
	if t.GPU == nil {
		return fmt.Errorf("the description of a target of backend %s has no GPU; name the target %s instead", name, targetName)
	}
	return nil
}

// Space implements backend.Backend.
func (Backend) Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	return sketch.New(w, t, numerics)
}

// Storage implements backend.Backend.
func (Backend) Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	return sketch.Storage(t, numerics, as)
}

// featureSet has only the analytic cost.
var featureSet = backend.CostAlone("gpusim-features-1")

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return featureSet }

// newUnit returns an empty translation unit of kernels for a target.
func newUnit(t *target.Target) *cpucode.Unit { return unitOf(t, nil) }

// unitOf returns an empty translation unit whose kernels are transformed by change, if not nil, before they are
// printed.
func unitOf(t *target.Target, change func(*ir.Func) *ir.Func) *cpucode.Unit {
	return cpucode.NewUnitOf(macros.Simulated(), func(u *cpucode.Unit, symbol string, s *schedule.Schedule) (backend.Info, error) {
		f, err := codegen.Lower(s, t.GPU)
		if err != nil {
			return backend.Info{}, err
		}
		if change != nil {
			f = change(f)
		}
		text, info := codegen.Simulated(symbol, f, u.Declarations())
		u.Write(text)
		return info, nil
	})
}

// Print implements backend.Code.
func (Backend) Print(symbol string, k backend.Kernel, t *target.Target) (backend.Printed, error) {
	return cpucode.PrintIn(newUnit(t), symbol, k)
}

// Module implements backend.Code.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	source, err := cpucode.LinkIn(newUnit(t), w, kernels)
	if err != nil {
		return toolchain.Build{}, err
	}
	return toolchain.Build{Target: t, Form: toolchain.Kernels, Level: toolchain.KernelLevel,
		Sources: []toolchain.File{{Name: "kernels.c", Text: source}}}, nil
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(t *target.Target) backend.Unit { return newUnit(t) }

// Dump implements backend.Code. The source is the kernel alone, without its prelude.
func (Backend) Dump(s *schedule.Schedule, t *target.Target, without []string) ([]backend.Step, error) {
	return codegen.Dump(s, t.GPU, without)
}
