package cuda

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
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
	list := []target.Named{{Name: name, Description: "this machine's first NVIDIA GPU; " + name + ":1 or " + name + ":NAME is another", Aliases: []string{"nvidia"}}}
	for _, c := range chips {
		list = append(list, target.Named{Name: c.Arch, Description: "NVIDIA " + c.Model, Aliases: []string{strings.ReplaceAll(strings.ToLower(c.Model), " ", "-")}})
	}
	return list
}

// Target implements backend.Devices. It returns this machine with its first GPU, or with a named model.
func (Backend) Target(named string, threads int) (*target.Target, error) {
	if named == name {
		return choose("", threads)
	}
	t, err := host(threads)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(chips, func(c target.GPU) bool { return c.Arch == named })
	if k < 0 {
		return nil, fmt.Errorf("target: unknown target %q", named)
	}
	gpu := chips[k]
	t.GPU = &gpu
	return t, t.Check()
}

// Choose implements backend.Chooser. It selects one of this machine's GPUs.
func (Backend) Choose(named, device string, threads int) (*target.Target, error) {
	if named != name || device == "" {
		return nil, fmt.Errorf("target: %s:%s chooses no card of this machine; use %s:NUMBER, or %s: and the UUID of a card or of a slice of one", named, device, name, name)
	}
	return choose(device, threads)
}

// Present implements backend.Devices. The first GPU must have the target's instruction set.
func (Backend) Present(t *target.Target) error {
	if err := (cpu.Backend{}).Present(t); err != nil {
		return err
	}
	if t.GPU.ID != "" {
		return nil // the driver has described it
	}
	g, err := choice(t, "")
	if err != nil {
		return fmt.Errorf("this machine has no GPU for target %s: %w", t.GPU.Arch, err)
	}
	if g.Arch != t.GPU.Arch {
		return fmt.Errorf("the GPU of this machine (%s) is %s, not %s", g.Model, g.Arch, t.GPU.Arch)
	}
	return nil
}

// Check implements backend.Devices. The target must have a GPU that kernels can be compiled for.
func (Backend) Check(t *target.Target) error {
	if t.GPU == nil {
		return fmt.Errorf("the description of a target of backend %s has no GPU; name the target %s, or a chip, instead", name, name)
	}
	return checkArch(t.GPU)
}

// Measure implements backend.Devices.
func (Backend) Measure(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (roofline.Rates, error) {
	q := query(tc, t, dir, visible(t), "rates.c", "rates_main.c")
	q.Launcher = launcher
	return q.Measure(ctx, "GPU", "L2", t.GPU.L2Bytes/8, farBytes(t.GPU))
}

// usualClock approximates the clock of current GPUs in Hz.
const usualClock = 1.7e9

// Clock implements backend.Backend.
func (Backend) Clock(*target.Target) float64 { return usualClock }

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return cost.Features{} }

// Print implements backend.Code.
func (Backend) Print(symbol string, k backend.Kernel, t *target.Target) (backend.Printed, error) {
	if k.Schedule.Own != nil {
		return modulefile.PrintWritten(symbol, k, t)
	}
	return modulefile.Print(symbol, k, t)
}

// Module implements backend.Code.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	var list []*modulefile.Printed
	var written []*modulefile.Written
	for _, p := range kernels {
		switch p := p.(type) {
		case *modulefile.Printed:
			list = append(list, p)
		case *modulefile.Written:
			written = append(written, p)
		}
	}
	switch {
	case len(written) == 0:
		return Module(w, list, t), nil
	case len(list) == 0:
		return modulefile.WrittenModule(w, written, t)
	}
	return toolchain.Build{}, fmt.Errorf("a module has %d user-written kernels and %d schedules, which run in different places", len(written), len(list))
}

// NewUnit implements backend.Code.
func (Backend) NewUnit(t *target.Target) backend.Unit { return modulefile.NewUnit(t, code) }

// Harness implements backend.Programs.
func (Backend) Harness(t *target.Target) toolchain.Build { return Harness(t) }

// Device implements backend.Programs. It returns the target's GPU, or the first one that the environment makes
// visible.
func (Backend) Device(t *target.Target) *backend.Device {
	return &backend.Device{ID: t.GPU.ID, Driver: os.Getenv(DriverVariable), Visible: visible(t)}
}

// visible returns the devices that the driver may show: only the chosen GPU, or those that the environment selects.
func visible(t *target.Target) string { return cmp.Or(t.GPU.ID, os.Getenv(VisibleVariable)) }

// Runtime implements backend.Programs.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return modulefile.Runtime(slices.Concat(DriverSources(), modulefile.DeviceCode(), modulefile.Card(), sources("runtime/src")))
}

// code returns the build that compiles kernels to PTX and, if an assembler for the GPU is available, to a cubin. The
// code is specific to the chip only if the kernels use its architecture-specific instructions.
func code(kernels string, t *target.Target) toolchain.Build {
	arch := macros.NVPTXArch(kernels, t.GPU.Arch)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: macros.NVPTXFlags(arch),
		Sources: []toolchain.File{{Name: "kernels.c", Text: macros.NVPTX() + kernels}},
		Finish: func(ptx []byte) ([]byte, error) {
			bound, err := macros.BoundThreads(string(ptx))
			return []byte(bound), err
		},
		Assemble: []string{"-arch=" + arch},
	}
}

// Module returns the build of candidates, all of the same workload and target.
func Module(w *expr.Workload, candidates []*modulefile.Printed, t *target.Target) toolchain.Build {
	return modulefile.Module(w, candidates, t, code)
}

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness returns the build of the program that verifies and times candidates on a GPU. It loads the driver's library
// at run time.
func Harness(t *target.Target) toolchain.Build {
	return cruntime.HarnessFor(t, slices.Concat(sources("driver/src"), modulefile.Sources(), modulefile.Card(), sources("harness/src")))
}

// DriverSources returns the sources that call the driver: declarations of the interface, the loader, and the
// construction of tensor maps.
func DriverSources() []toolchain.File { return append(sources("driver/src"), modulefile.Maps()...) }

// query returns a program of the given sources that queries the driver. visible selects the devices that the driver
// shows to it; empty for all.
func query(tc *toolchain.Toolchain, host *target.Target, dir, visible string, parts ...string) modulefile.Query {
	q := modulefile.Query{Toolchain: tc, Host: host, Dir: dir, Files: append(DriverSources(), sources("describe/src")...),
		Parts: append([]string{"driver.c"}, parts...), Library: cmp.Or(os.Getenv(DriverVariable), usualDriver)}
	if visible != "" {
		q.Env = []string{VisibleVariable + "=" + visible}
	}
	return q
}

// farBytes returns a size far beyond a GPU's cache.
func farBytes(g *target.GPU) int64 { return 4 * g.L2Bytes }

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return modulefile.Files(files, folder) }
