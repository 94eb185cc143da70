package aot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/trap"
)

// Choice is the schedule to use for a task.
type Choice struct {
	Trace []byte
	// Origin says where the schedule comes from, e.g. "tuned" or "default"; for the manifest.
	Origin string
	// LatencySeconds is what was measured when it was tuned; 0 = nothing.
	LatencySeconds float64
	// RelativeError is the largest difference from the reference that was measured, relative to the largest value; 0 =
	// not known.
	RelativeError float64
	// Record is the one that the schedule comes from; nil of others.
	Record *Record
}

// Options are what Compile needs beside the program.
type Options struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Choices has one schedule per task of the program.
	Choices []Choice
	// Parallel is how many compilers may run at once; 0 means 1.
	Parallel int
	// Output is the path of the package.
	Output string
	// Objects, if not nil, saves compiling what was compiled before.
	Objects *toolchain.Objects
	// Apart makes each task a translation unit of its own, as it is with Objects. The package then depends neither on
	// these nor on Parallel; compilers start more often.
	Apart bool
	// Check, if not nil, measures the package, opened, before it is written. An error of it fails the compilation.
	Check func(m *Model) (*Accuracy, error)
	// Weights, if not nil, says which weights of the program are in integers.
	Weights *Weights
	// Provenance, if not nil, says what the package is made of.
	Provenance *Provenance
	// Prefix is a name in C that tells the package from others that a program is linked with; empty for none.
	Prefix string
	// Own says whether the package may have a kernel that somebody wrote; nil = none. Its source comes with the
	// schedule, from wherever that comes, and runs in the package's process.
	Own func(*userkernel.Kernel) bool
	// C makes an archive of C source, for programs that have no loader, in the place of a package. Targets without an
	// operating system have no other form.
	C bool
	// Limits bound what C source takes.
	Limits Limits
	// Emulator, when set, is the command by which RunOnce and RunSeveral run programs of the target, e.g. qemu-aarch64
	// -L /usr/aarch64-linux-gnu.
	Emulator []string
}

// Compile writes a package. Nothing is left at Output when it fails.
func Compile(ctx context.Context, p *program.Program, o Options) (*Manifest, error) {
	if len(o.Choices) != len(p.Tasks) {
		return nil, fmt.Errorf("compiling %s: %d schedules for %d tasks", p.Name, len(o.Choices), len(p.Tasks))
	}
	if err := CheckPrefix(o.Prefix); err != nil {
		return nil, fmt.Errorf("compiling %s: prefix %w", p.Name, err)
	}
	by, err := registry.Of(o.Target)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", p.Name, err)
	}
	if len(p.Extents) > 0 && by.Device(o.Target) != nil {
		return nil, fmt.Errorf("compiling %s: %s cannot stay open in a package for a GPU: fix it by --shape", p.Name, p.Extents[0].Name)
	}
	if by.Device(o.Target) != nil {
		p = p.Unconditional() // all calls are queued at once, and what they compute does not lie in the host's memory
	}
	if o.Target.IsBare() {
		o.C, o.Apart, o.Objects = true, false, nil
	}
	c := &compilation{program: p, options: o, backend: by, runtime: by.Runtime(o.Target)}
	manifest, err := c.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", p.Name, err)
	}
	return manifest, nil
}

type compilation struct {
	program *program.Program
	options Options
	backend backend.Backend
	// runtime is what the package has beside its kernels and its plan.
	runtime backend.Runtime
	infos   []backend.Info
	// algorithms of each task's schedule.
	algorithms [][]string
	// multiplications of each task's schedule, as a share of those of direct sums.
	multiplications []float64
	// matrices are the formats of the instructions for matrices of each.
	matrices []string
	// accuracy is what was measured.
	accuracy *Accuracy
	sources  []toolchain.File
	// own are the sources of kernels that somebody wrote, kernels what the manifest says of each task's.
	own     []toolchain.File
	kernels []*OwnKernel
	written []*userkernel.Kernel
	// libraries are the sonames of those that kernels call, libraryCheck the source that checks their versions.
	libraries    []string
	libraryCheck string
	// embedded is code for devices that the sources take in.
	embedded []toolchain.Embedded
}

func (c *compilation) run(ctx context.Context) (*Manifest, error) {
	if c.options.C {
		if err := c.checkC(); err != nil {
			return nil, err
		}
	}
	if err := c.lower(); err != nil {
		return nil, err
	}
	l := newLayout(c.program, c.infos, c.options.Target.Threads(), alignmentFor(c.options.Target))
	if err := fits(c.options.Target, l.arenaBytes+l.weightsBytes); err != nil {
		return nil, err
	}
	if c.options.C {
		return c.writeC(ctx, l)
	}
	var err error
	if c.libraryCheck, c.libraries, err = userkernel.Check(c.written, "__attribute__((visibility(\"hidden\")))"); err != nil {
		return nil, err
	}
	l.checksLibraries = len(c.libraries) > 0
	c.sources = append(c.sources, c.runtime.Sources...)
	c.sources = append(c.sources, toolchain.File{Name: "plan.c", Text: l.planSource()})
	c.sources = append(c.sources, c.options.namedSources()...)
	object, err := c.compile(ctx)
	if err != nil {
		return nil, err
	}
	return c.write(l, object)
}

// narrowBytes is the memory that a program of 32 bits gets from Linux, whose own is the rest of the 4 GiB.
const narrowBytes = 3 << 30

// boardBytes is what offsets of a microcontroller reach; none has as much.
const boardBytes = 2 << 30

// fits says why a package that needs so much memory cannot run on a target.
func fits(t *target.Target, bytes int64) error {
	if t.IsBare() && bytes >= boardBytes {
		return fmt.Errorf("weights and intermediate results take %d MiB, and a microcontroller has at most %d MiB: compile it for a 64-bit target",
			bytes>>20, int64(boardBytes)>>20)
	}
	if t.Arch() == target.ARM32 && bytes >= narrowBytes {
		return fmt.Errorf("weights and intermediate results take %d MiB, and a program of 32 bits has less than %d MiB: compile it for a 64-bit target",
			bytes>>20, int64(narrowBytes)>>20)
	}
	return nil
}

// units is how many translation units the kernels are printed into.
func (o Options) units() int {
	if o.C {
		return min(len(o.Choices), 1)
	}
	if o.Objects != nil || o.Apart {
		return len(o.Choices)
	}
	return min(len(o.Choices), max(o.Parallel, 1)*unitsPerCompiler)
}

// unitsPerCompiler spreads the kernels over more units than compilers, so that a slow one does not hold up the rest.
const unitsPerCompiler = 3

// unitTime is the processor time that a compiler may take for a unit. A unit holds many kernels, and boards are slow.
const unitTime = 10 * time.Minute

// lower prints the kernels into translation units, each task into the next one in turn. Schedules may come from
// imported records, so what the printer did not foresee is an error, too.
func (c *compilation) lower() (err error) {
	defer trap.AsError(&err)
	n := c.options.units()
	units := make([]backend.Unit, n)
	for k := range units {
		units[k] = c.backend.NewUnit(c.options.Target)
	}
	for k, task := range c.program.Tasks {
		s, err := schedule.Replay(task.Workload, c.options.Choices[k].Trace)
		if err != nil {
			return fmt.Errorf("task %d (%s): %w", k, task.Name, err)
		}
		if s.Own != nil && c.options.C {
			return fmt.Errorf("task %d (%s): %s is an own kernel, which C source cannot have: leave --kernels and --own-kernels out", k, task.Name, s.Own.Kernel.Label())
		}
		if s.Own != nil && (c.options.Own == nil || !c.options.Own(s.Own.Kernel)) {
			return fmt.Errorf("task %d (%s): %s is not allowed: name its folder by --kernels, or allow all by --own-kernels", k, task.Name, s.Own.Kernel.Label())
		}
		info, err := units[k%n].Add(c.symbol(k), kernelSymbol(k), s)
		if err != nil {
			return fmt.Errorf("task %d (%s): %w", k, task.Name, err)
		}
		c.infos = append(c.infos, info)
		c.algorithms = append(c.algorithms, s.Algorithms())
		c.multiplications = append(c.multiplications, s.Multiplications())
		matrices := ""
		if format, has := s.Matrices(); has {
			matrices = format.String()
		}
		c.matrices = append(c.matrices, matrices)
		if c.kernels = append(c.kernels, ownOf(s)); s.Own != nil {
			c.written = append(c.written, s.Own.Kernel)
		}
	}
	for k, unit := range units {
		c.sources = append(c.sources, toolchain.File{Name: fmt.Sprintf("kernels%d.c", k), Text: unit.Source()})
		c.embedded = append(c.embedded, unit.Embedded()...)
		c.own = append(c.own, unit.Own()...)
	}
	return nil
}

// symbol is the C name of a task's kernel, which in C source must differ from those of other archives.
func (c *compilation) symbol(task int) string {
	if c.options.C {
		return c.cPrefix() + "_" + kernelSymbol(task)
	}
	return kernelSymbol(task)
}

// hidden keeps what is not of the interface inside of model.so.
var hidden = []string{"-fvisibility=hidden"}

// compile returns the bytes of model.so.
func (c *compilation) compile(ctx context.Context) (object []byte, err error) {
	dir, err := os.MkdirTemp("", "tilth-compile-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, objectName)
	build := toolchain.Build{Target: c.options.Target, Form: toolchain.Library, Level: toolchain.KernelLevel, Sources: c.sources,
		Flags: hidden, SOName: soName(c.options.Prefix), Headers: c.runtime.Headers, Embedded: c.embedded, Parallel: c.options.Parallel, Limits: toolchain.Limits{Time: unitTime},
		Objects: c.options.Objects}
	build.AddOwn(c.own)
	build.AddLibraries(c.libraries, c.libraryCheck)
	if err = c.options.Toolchain.Build(ctx, build, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (c *compilation) manifest(l *layout) *Manifest {
	m := &Manifest{Format: formatOf(c.program), Model: c.program.Name, Prefix: c.options.Prefix, Target: c.options.Target.WithToolchain(c.options.Toolchain.For(c.options.Target)),
		Inputs: l.tensorInfos(c.program.Inputs), Outputs: l.tensorInfos(c.program.Outputs),
		ArenaBytes: l.arenaBytes, ArenaLowerBoundBytes: l.arenaLeast, WeightsBytes: l.weightsBytes, Weights: c.options.Weights, Accuracy: c.accuracy,
		Provenance: c.options.Provenance}
	for k, task := range c.program.Tasks {
		choice := c.options.Choices[k]
		m.Tasks = append(m.Tasks, TaskInfo{Name: task.Name, Workload: task.Workload.Digest(), Trace: string(choice.Trace),
			Origin: choice.Origin, LatencySeconds: choice.LatencySeconds, Record: choice.Record, RelativeError: choice.RelativeError, Algorithms: c.algorithms[k],
			Multiplications: c.multiplications[k], Matrices: c.matrices[k], Kernel: c.kernels[k],
			Flop: task.Workload.Flop(), IntegerOps: task.Workload.IntegerOps(), Bytes: task.Workload.Bytes()})
	}
	for _, o := range c.program.Open {
		m.Outputs[o.Output].OpenAxes = append(m.Outputs[o.Output].OpenAxes, o.Axis)
	}
	for k := range m.Outputs {
		if in := c.program.Continues(k); in >= 0 {
			m.Outputs[k].Continues = m.Inputs[in].Name
		}
	}
	if d, ok := c.program.Decoding(); ok {
		m.Decoding = &Decoding{Past: c.program.Extents[d.Past].Name, Step: c.program.Extents[d.Step].Name}
	}
	for _, e := range c.program.Extents {
		m.Extents = append(m.Extents, Extent{Name: e.Name, Least: e.Least, Most: e.Most})
	}
	for _, call := range c.program.Calls {
		info := CallInfo{Name: call.Name, Task: call.Task, Counts: c.counts(call)}
		most := map[string]int64{}
		for _, e := range c.program.Extents {
			most[e.Name] = e.Most
		}
		for _, v := range call.Variants {
			upTo := map[string]int64{}
			for _, limit := range v.Caps {
				upTo[c.program.Extents[limit.Extent].Name] = limit.Most
			}
			info.Variants = append(info.Variants, CallVariant{Task: v.Task, UpTo: upTo})
			m.Tasks[v.Task].depends(c.program.Tasks[v.Task].Workload, upTo)
		}
		if w := c.program.Tasks[call.Task].Workload; len(call.Variants) > 0 || w.IsOpen() {
			m.Tasks[call.Task].depends(w, most)
		}
		m.Calls = append(m.Calls, info)
	}
	return m
}

// depends tells that a task's operations and bytes are those of some extents.
func (t *TaskInfo) depends(w *expr.Workload, extents map[string]int64) {
	t.Extents, t.Definition = extents, w.Text()
}

// counts are the names of the extents that a call's counts are.
func (c *compilation) counts(call program.Call) (names []string) {
	for i, in := range c.program.Tasks[call.Task].Workload.Inputs {
		if in.Most == 0 {
			continue
		}
		for _, e := range c.program.Extents {
			if e.Value == call.Args[i] {
				names = append(names, e.Name)
			}
		}
	}
	return names
}
