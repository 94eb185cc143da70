package modulefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// DriverBackend implements the methods of backend.Backend that backends for devices with drivers share.
type DriverBackend struct{}

// Between implements backend.Devices. The host's threads do not affect a device.
func (DriverBackend) Between(few, _ backend.Measured, _ *target.Target) roofline.Rates {
	return few.Rates
}

// Space implements backend.Backend.
func (DriverBackend) Space(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	return sketch.New(w, t, numerics)
}

// Storage implements backend.Backend.
func (DriverBackend) Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	return sketch.Storage(t, numerics, as)
}

// Reference implements backend.Code. Candidates are verified against results computed on the host.
func (DriverBackend) Reference(w *expr.Workload, t *target.Target) (toolchain.Build, error) {
	return cpu.Backend{}.Reference(w, t)
}

// Dump implements backend.Code. The source is the kernel alone, without its prelude.
func (DriverBackend) Dump(s *schedule.Schedule, t *target.Target, without []string) ([]backend.Step, error) {
	return codegen.Dump(s, t.GPU, without)
}

// Runtime returns the runtime of packages for a device: the common parts and the device's own sources.
func Runtime(own []toolchain.File) backend.Runtime {
	r := backend.Runtime{Headers: append(cruntime.CommonHeaders(), own...), Sources: cruntime.CommonSources(), Interface: cruntime.Interface()}
	for _, f := range own {
		if strings.HasSuffix(f.Name, ".c") {
			r.Sources = append(r.Sources, f)
		}
	}
	return r
}

// Query is a program that queries a driver. It is a separate process, because drivers start threads and retain memory.
type Query struct {
	Toolchain *toolchain.Toolchain
	Host      *target.Target
	// Dir is the folder to build the program in.
	Dir string
	// Files lists all sources, and Parts the names of those that make up the program.
	Files []toolchain.File
	Parts []string
	// Launcher is a prefix of the command, Library the driver's library, the program's first argument.
	Launcher []string
	Library  string
	// Env lists additional environment variables. Cache is the one that names the driver's cache, if Dir should hold
	// it.
	Env   []string
	Cache string
}

// Build builds the program and returns its path.
func (q Query) Build(ctx context.Context) (string, error) {
	program := filepath.Join(q.Dir, "ask")
	unit := ""
	for _, part := range q.Parts {
		unit += "#include \"" + part + "\"\n"
	}
	return program, q.Toolchain.Build(ctx, toolchain.Build{
		Target: q.Host, Form: toolchain.Executable, Headers: q.Files, Sources: []toolchain.File{{Name: "unit.c", Text: unit}},
	}, program)
}

// Run runs the program and returns its output.
func (q Query) Run(ctx context.Context, program string, args ...string) (string, error) {
	command := slices.Concat(q.Launcher, []string{program, q.Library}, args)
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), q.Env...)
	if q.Cache != "" {
		cmd.Env = append(cmd.Env, q.Cache+"="+q.Dir)
	}
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if said := strings.TrimSpace(complaint.String()); err != nil && said != "" {
		err = errors.New(said)
	}
	return string(out), err
}

// Ask builds and runs the program.
func (q Query) Ask(ctx context.Context, args ...string) (string, error) {
	program, err := q.Build(ctx)
	if err != nil {
		return "", err
	}
	return q.Run(ctx, program, args...)
}

// asking bounds the time to describe devices. An idle driver takes seconds to start.
const asking = time.Minute

// AskOnce is like Ask with this machine's compiler, in a temporary folder.
func (q Query) AskOnce(args ...string) (text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	if q.Toolchain, err = toolchain.Find(ctx, os.Getenv(toolchain.Variable)); err != nil {
		return "", err
	}
	if q.Dir, err = os.MkdirTemp("", "tilth-describe-*"); err != nil {
		return "", err
	}
	defer os.RemoveAll(q.Dir)
	return q.Ask(ctx, args...)
}

// Measure returns the rates of a device, described by kind, whose cache has the given name. near and far are sizes
// in bytes that fit the cache, and that are far beyond it; more are arguments that precede them.
func (q Query) Measure(ctx context.Context, kind, cache string, near, far int64, more ...string) (roofline.Rates, error) {
	r := roofline.Rates{Stores: []roofline.Store{{Name: cache, Bytes: q.Host.GPU.L2Bytes}, {Name: "memory", Bytes: roofline.MemoryBytes}}}
	text, err := q.Ask(ctx, append(more, strconv.FormatInt(near, 10), strconv.FormatInt(far, 10))...)
	if err != nil {
		return r, fmt.Errorf("measuring the %s: %w", kind, err)
	}
	if _, err := fmt.Sscan(text, &r.FlopPerSecond, &r.Stores[0].BytesPerSecond, &r.Stores[1].BytesPerSecond); err != nil {
		return r, fmt.Errorf("measuring the %s: %q: %w", kind, text, err)
	}
	return r, r.Check()
}
