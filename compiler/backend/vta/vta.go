package vta

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	cpucode "github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

const (
	// name is the name of the backend, targetName that of this machine with a simulated accelerator.
	name       = "vta"
	targetName = "vta-sim"
)

// Backend implements backend.Backend. Operators that the accelerator lacks, the harness and packages are those of the
// cpu backend, and so are the rates that no kernel exceeds: the host computes faster than the simulated accelerator.
type Backend struct{ cpu.Backend }

// Name implements backend.Devices.
func (Backend) Name() string { return name }

// Targets implements backend.Devices.
func (Backend) Targets() []target.Named {
	return []target.Named{{Name: targetName, Description: "a simulated accelerator for 8-bit products, and this machine for all else"}}
}

// Target implements backend.Devices.
func (Backend) Target(_ string, threads int) (*target.Target, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	return t.WithBackend(name), nil
}

// Storage implements backend.Backend. Numbers keep their types.
func (Backend) Storage(*target.Target, schedule.Numerics, array.DType) array.Storage {
	return array.Storage{}
}

// featureSet has only the analytic cost.
var featureSet = backend.CostAlone("vta-features-1")

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return featureSet }

// accelerated reports whether a schedule is for the accelerator.
func accelerated(s *schedule.Schedule) bool {
	f, has := s.Matrices()
	return has && f == schedule.I8
}

// kernel is a printed kernel for the accelerator.
type kernel struct{ backend.Printed }

// Print implements backend.Code.
func (b Backend) Print(symbol string, k backend.Kernel, t *target.Target) (backend.Printed, error) {
	if !accelerated(k.Schedule) {
		return b.Backend.Print(symbol, k, t)
	}
	p, err := cpucode.PrintIn(newUnit(), symbol, k)
	return kernel{p}, err
}

// Module implements backend.Code. The kernels of a workload are all for the accelerator, or all for the host.
func (b Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	var list []backend.Printed
	for _, k := range kernels {
		if own, ok := k.(kernel); ok {
			list = append(list, own.Printed)
		}
	}
	if len(list) == 0 {
		return b.Backend.Module(w, kernels, t)
	}
	if len(list) < len(kernels) {
		return toolchain.Build{}, fmt.Errorf("a module has kernels for the accelerator and for the host")
	}
	source, err := cpucode.LinkIn(newUnit(), w, list)
	_, headers := simulator()
	return toolchain.Build{Target: t, Form: toolchain.Kernels, Level: toolchain.KernelLevel, Headers: headers, Imports: true,
		Sources: []toolchain.File{{Name: "kernels.c", Text: source}}}, err
}

// Harness implements backend.Devices. It contains the simulator, which candidates import: they cannot set the time.
func (b Backend) Harness(t *target.Target) toolchain.Build {
	h := b.Backend.Harness(t)
	sources, headers := simulator()
	h.Sources, h.Headers, h.Exports = append(h.Sources, sources...), append(h.Headers, headers...), []string{"vta_*"}
	return h
}

// Runtime implements backend.Programs.
func (b Backend) Runtime(t *target.Target) backend.Runtime {
	r := b.Backend.Runtime(t)
	sources, headers := simulator()
	r.Sources, r.Headers = append(r.Sources, sources...), append(r.Headers, headers...)
	return r
}

// Dump implements backend.Code.
func (b Backend) Dump(s *schedule.Schedule, t *target.Target, without []string) ([]backend.Step, error) {
	if !accelerated(s) {
		return b.Backend.Dump(s, t, without)
	}
	return dump(s)
}
