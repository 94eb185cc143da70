package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tilth-dev/tilth/compiler/target"
)

// Form is the kind of output of a build.
type Form int

// The output kinds.
const (
	// Kernels is a shared object for a process that already has libc and libm.
	Kernels Form = iota + 1
	// Library is a shared object with its dependencies: libc, libm, threads.
	Library
	// Executable is a program that exports no symbols but Exports to the objects that it loads.
	Executable
	// Device is code that a device's driver loads: the output of clang for the only source, with the build's flags
	// alone, after Finish, and the output of the assembler, if any. Nothing is linked.
	Device
	// Bare is a file for a processor without an operating system: the output of lld for the objects with LinkFlags
	// alone.
	Bare
)

// File is a named text.
type File struct{ Name, Text string }

// Build describes an output to make.
type Build struct {
	Target *target.Target
	Form   Form
	// Sources are compiled separately, up to Parallel at a time, and linked together.
	Sources []File
	// Headers are the files that sources may include.
	Headers []File
	// Embedded is device code that is built first, into files beside the sources, which may include it by .incbin.
	Embedded []Embedded `json:",omitempty"`
	// Level is the optimisation level; 0 means 2.
	Level int
	// Levels overrides the level of sources by name.
	Levels map[string]int `json:",omitempty"`
	// Flags are additional compiler flags.
	Flags []string
	// Libraries are the sonames of shared libraries to link with. They must be this machine's: a build with
	// libraries is for its architecture.
	Libraries []string `json:",omitempty"`
	// LinkFlags are the linker flags of a Bare build. Headers may be linker scripts.
	LinkFlags []string `json:",omitempty"`
	// Exports lists patterns of symbols that an Executable exports. Imports is set for Kernels that need such symbols.
	Exports []string `json:",omitempty"`
	Imports bool     `json:",omitempty"`
	// SOName is the soname of a Library; empty for none.
	SOName string `json:",omitempty"`
	// Finish converts device code to its final form; nil keeps it as it is. It must be a function of the rest of
	// the build.
	Finish func(code []byte) ([]byte, error) `json:"-"`
	// Assemble holds the assembler flags for finished device code; nothing is assembled if it is empty.
	Assemble []string `json:",omitempty"`
	// Join combines device code and its assembled form, which is nil without an assembler. If Join is nil, the code
	// is kept alone and not assembled. It must be a function of the rest of the build.
	Join func(code, assembled []byte) []byte `json:"-"`
	// Parallel limits the concurrent compilers; 0 means 1.
	Parallel int
	Limits   Limits
	// Objects, if not nil, caches object files between builds.
	Objects *Objects `json:"-"`
	// Progress, if not nil, receives the number of compiled sources after each. Calls do not overlap.
	Progress func(compiled, all int) `json:"-"`
}

// Embedded is a build of device code with the name of its output file.
type Embedded struct {
	Name  string
	Build Build
}

// KernelLevel is the optimisation level of generated kernels. It is the same everywhere, so that measurements apply
// to deployed kernels. Their loops are already tiled, unrolled and vectorised: higher levels take two to three
// times as long and gain nothing.
const KernelLevel = 1

// OwnLevel is the optimisation level of user kernels, whose loops the compiler may improve. It may also fuse their
// multiply-adds.
const OwnLevel = 3

// AddOwn adds user kernels to the sources.
func (b *Build) AddOwn(kernels []File) {
	for _, f := range kernels {
		if b.Levels == nil {
			b.Levels = map[string]int{}
		}
		b.Levels[f.Name] = OwnLevel
		b.Sources = append(b.Sources, f)
	}
}

// AddLibraries adds the shared libraries that kernels call, if any, and the source that checks their versions.
func (b *Build) AddLibraries(sonames []string, check string) {
	if len(sonames) > 0 {
		b.Libraries = append(b.Libraries, sonames...)
		b.Sources = append(b.Sources, File{Name: "libraries.c", Text: check})
	}
}

// commonFlags suit generated kernels: they ignore errno and exceptions, and keep sums in the order of the schedule.
// Pointers may leave their buffer temporarily, where a constant offset leads back into it.
var commonFlags = []string{"-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math",
	"-fno-semantic-interposition", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident", "-fwrapv", "-w", "-I.",
	"-D_FILE_OFFSET_BITS=64"} // weights may exceed 2 GiB, also on 32 bits

// contract keeps a product of one operator and a sum of another apart, which are one expression where they share a
// kernel. Kernels name the multiply-adds that they fuse.
const contract = "-ffp-contract=off"

// bareFlags suit programs without an operating system: only the compiler's own headers are available, code stays at
// its link address, and the linker drops unused functions.
var bareFlags = []string{"-ffreestanding", "-fno-pic", "-ffunction-sections", "-fdata-sections"}

// keepOrder makes clang keep the instructions of a kernel in printed order. Its scheduler hoists loads, for which a
// tile that fills the register file has no registers: a 4x3 tile of multiply-adds on AVX2 ran at 11 GFLOP/s with
// it, with accumulators spilled in every step, and at 92 without. Processors of this architecture reorder
// instructions themselves.
var keepOrder = []string{"-mllvm", "-enable-misched=false"}

// noReduction keeps the index arithmetic of loops as printed, which maps to addressing with constants and a scaled
// register. Strength reduction of the addresses took 17 to 25 % of a kernel's compile time.
var noReduction = []string{"-mllvm", "-disable-lsr"}

// alignedStack makes kernels align their stack for spilled vectors. Otherwise clang recognises the need too late,
// when no register is left to restore the stack pointer, and a vector may straddle two lines or pages: a tile of
// 7x4 vectors of AVX-512, one register too many, took three times as long with some callers' stacks.
const alignedStack = "-mstackrealign"

// noLifetimes omits lifetime markers of local variables. A kernel has hundreds of variables, most of which become
// registers, and compiles 3 to 5 % faster without the markers.
var noLifetimes = []string{"-Xclang", "-disable-lifetime-markers"}

// Build compiles and links into the file output, which is created only on success. Errors are of type *Error.
func (tc *Toolchain) Build(ctx context.Context, b Build, output string) error {
	dir, err := os.MkdirTemp(filepath.Dir(output), ".build-*")
	if err != nil {
		return &Error{Kind: Infra, Step: "compiling", Message: err.Error(), Err: err}
	}
	defer os.RemoveAll(dir)
	if err := writeFiles(dir, slices.Concat(b.Headers, b.Sources)); err != nil {
		return err
	}
	if err := tc.make(ctx, b, dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, linked), output); err != nil {
		return &Error{Kind: Infra, Step: "finishing " + filepath.Base(output), Message: err.Error(), Err: err}
	}
	return nil
}

func writeFiles(dir string, files []File) error {
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			return &Error{Kind: Infra, Step: "writing " + f.Name, Message: err.Error(), Err: err}
		}
	}
	return nil
}

// make builds into the directory dir.
func (tc *Toolchain) make(ctx context.Context, b Build, dir string) error {
	if b.Form == Device {
		return tc.device(ctx, b, dir)
	}
	// The sources include the device code.
	err := b.parallel(ctx, len(b.Embedded), func(ctx context.Context, k int) error {
		e := b.Embedded[k]
		e.Build.Limits = b.Limits
		return tc.Build(ctx, e.Build, filepath.Join(dir, e.Name))
	})
	if err != nil {
		return err
	}
	objects, err := tc.compileAll(ctx, b, dir)
	if err != nil {
		return err
	}
	if objects, err = tc.withHalves(ctx, b, dir, objects); err != nil {
		return err
	}
	return tc.link(ctx, b, dir, objects)
}

// compileAll returns the object file names in source order. The first failure cancels the other compilations.
func (tc *Toolchain) compileAll(ctx context.Context, b Build, dir string) ([]string, error) {
	objects := make([]string, len(b.Sources))
	var mu sync.Mutex
	compiled := 0
	err := b.parallel(ctx, len(objects), func(ctx context.Context, k int) error {
		source := b.Sources[k].Name
		objects[k] = strings.TrimSuffix(source, ".c") + ".o"
		if err := tc.compile(ctx, b, dir, source, objects[k]); err != nil || b.Progress == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		compiled++
		b.Progress(compiled, len(b.Sources))
		return nil
	})
	return objects, err
}

// parallel calls do for the numbers below n, b.Parallel at a time. After an error, it begins no further call.
func (b Build) parallel(ctx context.Context, n int, do func(ctx context.Context, k int) error) error {
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(max(b.Parallel, 1))
	for k := range n {
		all.Go(func() error {
			if within.Err() != nil {
				return nil
			}
			return do(within, k)
		})
	}
	err := all.Wait()
	if err = cmp.Or(context.Cause(ctx), err); err != nil && !errors.As(err, new(*Error)) {
		err = &Error{Kind: Infra, Step: "compiling", Message: "abandoned: " + err.Error(), Err: err}
	}
	return err
}

// compile compiles a source to an object file, unless an earlier build has cached it.
func (tc *Toolchain) compile(ctx context.Context, b Build, dir, source, object string) error {
	path, flags, err := tc.compiler(b.Target)
	if err != nil {
		return err
	}
	args := append(flags, tc.flags(b, source)...)
	key := ""
	if b.Objects != nil {
		key = tc.objectKey(path, args, b, source)
		if b.Objects.fetch(key, filepath.Join(dir, object)) {
			return nil
		}
	}
	step := fmt.Sprintf("compiling %s with %s", source, tc.Name)
	args = append(args, "-c", source, "-o", object)
	if err := b.Limits.run(ctx, step, program{dir: dir, path: path, args: args, box: tc.box, loaded: tc.servers}); err != nil {
		return withPackage(b.Target, err)
	}
	if b.Objects != nil {
		b.Objects.keep(key, filepath.Join(dir, object))
	}
	return nil
}

// flags returns the compiler flags for a source, except those for the target.
func (tc *Toolchain) flags(b Build, source string) []string {
	level := cmp.Or(b.Levels[source], b.Level, 2)
	fusing := contract
	if b.Levels[source] == OwnLevel {
		fusing = "-ffp-contract=fast"
	}
	flags := append(slices.Clone(commonFlags), "-O"+strconv.Itoa(level), fusing)
	if !b.Target.HasOperatingSystem() {
		flags = append(flags, bareFlags...)
	}
	if tc.family == "clang" && level == KernelLevel {
		flags = append(flags, noLifetimes...)
		if b.Target.Arch() == target.X86 {
			flags = append(append(append(flags, keepOrder...), noReduction...), alignedStack)
		}
	}
	return append(flags, b.Flags...)
}
