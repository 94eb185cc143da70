package opencl

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Backend implements backend.Backend.
type Backend struct{ modulefile.DriverBackend }

// Name implements backend.Devices.
func (Backend) Name() string { return name }

// Targets implements backend.Devices.
func (Backend) Targets() []target.Named {
	return []target.Named{{Name: name, Description: "this machine's OpenCL device"}}
}

// Target implements backend.Devices. It returns this machine with its OpenCL device.
func (Backend) Target(_ string, threads int) (*target.Target, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	t = t.WithBackend(name).Clone()
	if t.GPU, err = describe(t); err != nil {
		return nil, fmt.Errorf("target: describing the OpenCL device of this machine: %w", err)
	}
	return t, t.Check()
}

// Present implements backend.Devices. The device and its driver must match the target.
func (Backend) Present(t *target.Target) error {
	if err := (cpu.Backend{}).Present(t); err != nil {
		return err
	}
	g, err := describe(t)
	if err != nil {
		return fmt.Errorf("this machine has no OpenCL device for the target: %w", err)
	}
	if *g != *t.GPU {
		return fmt.Errorf("the OpenCL device of this machine is %s (%s), not %s (%s)", g.Model, g.Driver, t.GPU.Model, t.GPU.Driver)
	}
	return nil
}

// Check implements backend.Devices.
func (Backend) Check(t *target.Target) error {
	if t.GPU == nil || t.GPU.Arch != target.OpenCL {
		return fmt.Errorf("the description of a target of backend %s has no OpenCL device; name the target %s instead", name, name)
	}
	return nil
}

// Measure implements backend.Devices.
func (Backend) Measure(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (roofline.Rates, error) {
	number, err := chosen()
	if err != nil {
		return roofline.Rates{}, err
	}
	q := query(tc, t, dir, "rates_main.c")
	q.Launcher = launcher
	near := max(min(t.GPU.L2Bytes, farBytes)/8, minCopied)
	return q.Measure(ctx, "OpenCL device", "cache", near, farBytes, strconv.Itoa(number))
}

// clock approximates the clock of current GPUs in Hz.
const clock = 1.5e9

// Clock implements backend.Backend.
func (Backend) Clock(*target.Target) float64 { return clock }

// featureSet has only the analytic cost, since devices differ too much for one model.
var featureSet = backend.CostAlone("opencl-features-1")

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return featureSet }

// Print implements backend.Code.
func (Backend) Print(symbol string, k backend.Kernel, t *target.Target) (backend.Printed, error) {
	return modulefile.Print(symbol, k, t)
}

// Module implements backend.Code.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	list := make([]*modulefile.Printed, len(kernels))
	for k, p := range kernels {
		list[k] = p.(*modulefile.Printed)
	}
	return modulefile.Module(w, list, t, code), nil
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(t *target.Target) backend.Unit { return modulefile.NewUnit(t, code) }

// Harness implements backend.Programs.
func (Backend) Harness(t *target.Target) toolchain.Build { return Harness(t) }

// Device implements backend.Programs. It returns the device that the environment selects, or the first. Describing
// the device has already refused an invalid number.
func (Backend) Device(*target.Target) *backend.Device {
	number, _ := chosen()
	return &backend.Device{Number: number, Driver: os.Getenv(LibraryVariable), Compiles: true}
}

// Runtime implements backend.Programs.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return modulefile.Runtime(slices.Concat(DriverSources(), modulefile.DeviceCode(), sources("runtime/src")))
}

// code returns the OpenCL C of kernels. A compiler checks it first, so that errors appear at build time. Its output
// is discarded.
func code(kernels string, t *target.Target) toolchain.Build {
	text := macros.OpenCL(kernels)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: macros.SPIRFlags(t.GPU.Extensions),
		Sources: []toolchain.File{{Name: "kernels.c", Text: text}},
		Finish:  func([]byte) ([]byte, error) { return []byte(text), nil },
	}
}

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness returns the build of the program that verifies and times candidates on an OpenCL device. It loads the
// library at run time.
func Harness(t *target.Target) toolchain.Build {
	return cruntime.HarnessFor(t, append(append(DriverSources(), modulefile.Sources()...), sources("harness/src")...))
}

// DriverSources returns the sources that call OpenCL: declarations of the interface, and the loader.
func DriverSources() []toolchain.File { return sources("driver/src") }

// query returns a program with the given main file that queries OpenCL. Its first argument is the number of the
// device.
func query(tc *toolchain.Toolchain, host *target.Target, dir, main string) modulefile.Query {
	return modulefile.Query{Toolchain: tc, Host: host, Dir: dir, Files: append(DriverSources(), sources("describe/src")...),
		Parts: []string{"opencl.c", "rates.c", main}, Library: library(), Cache: "POCL_CACHE_DIR"}
}

const (
	// farBytes is a size far beyond a cache.
	farBytes = 256 << 20
	// minCopied is the minimum size in bytes for a measurable copy.
	minCopied = 64 << 10
)

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return modulefile.Files(files, folder) }
