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
)

// Choice is the schedule to use for a task.
type Choice struct {
	Trace []byte
	// Origin is the source of the schedule, e.g. "tuned" or "default", for the manifest.
	Origin string
	// LatencySeconds is the latency measured during tuning; 0 if none.
	LatencySeconds float64
	// RelativeError is the largest measured difference from the reference, relative to the largest value; 0 if
	// unknown.
	RelativeError float64
	// Record identifies the record of the schedule; nil if none exists.
	Record *Record
}

// Options are the inputs of Compile other than the program.
type Options struct {
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Choices has one schedule per task of the program.
	Choices []Choice
	// Parallel limits the concurrent compilers; 0 means 1.
	Parallel int
	// Output is the path of the package.
	Output string
	// Objects, if not nil, caches compiled objects.
	Objects *toolchain.Objects
	// Progress, if not nil, receives the number of compiled sources of a package after each. Calls do not overlap.
	Progress func(compiled, all int)
	// Apart makes each task a separate translation unit, as Objects does. The package then depends neither on
	// Objects nor on Parallel, at the cost of more compiler runs.
	Apart bool
	// Check, if not nil, measures the opened package before it is written. Its error fails the compilation.
	Check func(m *Model) (*Accuracy, error)
	// Weights, if not nil, describes the integer weights of the program.
	Weights *Weights
	// Provenance, if not nil, describes the inputs of the package.
	Provenance *Provenance
	// Prefix is a C name that distinguishes the package from others linked into a program; empty for none.
	Prefix string
	// Own reports whether the package may include a user kernel; nil means none. The kernel's source comes with the
	// schedule, from any origin, and runs in the package's process.
	Own func(*userkernel.Kernel) bool
	// C produces an archive of C source, for programs without a loader, instead of a package. Targets without an
	// operating system have no other form.
	C bool
	// Limits bounds the memory use of C source, and the size of a package.
	Limits Limits
	// Emulator, if set, is the command by which RunOnce and RunSeveral run programs of the target, e.g.
	// qemu-aarch64 -L /usr/aarch64-linux-gnu.
	Emulator []string
}

// Compile writes a package. It leaves nothing at Output on failure.
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
		p = p.Unconditional() // all calls are queued at once, and their results are not in host memory
	}
	if !o.Target.HasOperatingSystem() {
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
	// runtime is the part of the package besides its kernels and plan.
	runtime backend.Runtime
	infos   []backend.Info
	// algorithms holds the algorithms of each task's schedule.
	algorithms [][]string
	// multiplications holds those of each task's schedule, relative to direct sums.
	multiplications []float64
	// matrices holds the format of each task's matrix instructions.
	matrices []string
	// accuracy is the measured accuracy.
	accuracy *Accuracy
	sources  []toolchain.File
	// own holds the sources of user kernels, kernels their manifest entries by task.
	own     []toolchain.File
	kernels []*OwnKernel
	written []*userkernel.Kernel
	// libraries holds the sonames that kernels call, libraryCheck the source that checks their versions.
	libraries    []string
	libraryCheck string
	// embedded is device code that the sources include.
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
	if c.options.Prefix != "" {
		named := fmt.Sprintf("#include \"handle.h\"\n\nTILTH_API const struct tilth_api *%s_api(void) { return tilth_api(); }\n", c.options.Prefix)
		c.sources = append(c.sources, toolchain.File{Name: "named.c", Text: named})
	}
	object, err := c.compile(ctx)
	if err != nil {
		return nil, err
	}
	return c.write(l, object)
}

// narrowBytes is the address space of a 32-bit program on Linux; the kernel reserves the rest of the 4 GiB.
const narrowBytes = 3 << 30

// boardBytes is the range of offsets on a microcontroller, far above any memory.
const boardBytes = 2 << 30

// fits returns an error if a package with the given memory requirement cannot run on a target.
func fits(t *target.Target, bytes int64) error {
	if !t.HasOperatingSystem() && bytes >= boardBytes {
		return fmt.Errorf("weights and intermediate results take %d MiB, and a microcontroller has at most %d MiB: compile it for a 64-bit target",
			bytes>>20, int64(boardBytes)>>20)
	}
	if t.Arch() == target.ARM32 && bytes >= narrowBytes {
		return fmt.Errorf("weights and intermediate results take %d MiB, and a program of 32 bits has less than %d MiB: compile it for a 64-bit target",
			bytes>>20, int64(narrowBytes)>>20)
	}
	return nil
}

// units returns the number of translation units for the kernels.
func (o Options) units() int {
	if o.C {
		return min(len(o.Choices), 1)
	}
	if o.Objects != nil || o.Apart {
		return len(o.Choices)
	}
	return min(len(o.Choices), max(o.Parallel, 1)*unitsPerCompiler)
}

// unitsPerCompiler spreads the kernels over more units than compilers, so that a slow unit does not delay the rest.
const unitsPerCompiler = 3

// unitTime limits the processor time for a unit. A unit holds many kernels, and boards are slow.
const unitTime = 10 * time.Minute

// lower prints the kernels into translation units, round-robin by task. Schedules may come from imported records,
// so unsupported code is an error rather than a panic.
func (c *compilation) lower() (err error) {
	defer schedule.RecoverAs(&err)
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

// symbol returns the C name of a task's kernel, which must be unique across archives of C source.
func (c *compilation) symbol(task int) string {
	if c.options.C {
		return c.cPrefix() + "_" + kernelSymbol(task)
	}
	return kernelSymbol(task)
}

// hidden hides symbols of model.so that are not part of the interface.
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
		Objects: c.options.Objects, Progress: c.options.Progress}
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
		ArenaBytes: l.arenaBytes, ArenaLowerBoundBytes: l.arenaMin, WeightsBytes: l.weightsBytes, Weights: c.options.Weights, Accuracy: c.accuracy,
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
		x := Extent{Name: e.Name, Min: e.Whole(e.Min), Max: e.Whole(e.Max)}
		if e.Step > 1 {
			x.Step = e.Step
		}
		m.Extents = append(m.Extents, x)
	}
	maxima := m.withMaxima(nil)
	for k, call := range c.program.Calls {
		info := CallInfo{Name: call.Name, Task: call.Task, Counts: c.counts(call), Repeats: "?"}
		if count, ok := c.program.CountOf(k); ok {
			info.Repeats = count
		}
		for _, v := range call.Variants {
			upTo := map[string]int64{}
			for _, limit := range v.Caps {
				e := c.program.Extents[limit.Extent]
				upTo[e.Name] = e.Whole(limit.Max)
			}
			info.Variants = append(info.Variants, CallVariant{Task: v.Task, UpTo: upTo})
			m.Tasks[v.Task].depends(c.program.Tasks[v.Task].Workload, upTo)
		}
		if w := c.program.Tasks[call.Task].Workload; len(call.Variants) > 0 || w.IsOpen() {
			m.Tasks[call.Task].depends(w, maxima)
		}
		m.Calls = append(m.Calls, info)
	}
	return m
}

// depends records that a task's operations and bytes are those for particular extents.
func (t *TaskInfo) depends(w *expr.Workload, extents map[string]int64) {
	t.Extents, t.Definition = extents, w.Text()
}

// counts returns the names of the extents that a call's counts correspond to.
func (c *compilation) counts(call program.Call) (names []string) {
	for i, in := range c.program.Tasks[call.Task].Workload.Inputs {
		if in.Max == 0 {
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
