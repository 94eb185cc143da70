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

	"github.com/tilth-dev/tilth/compiler/target"
)

// Form is what a build makes.
type Form int

// The forms.
const (
	// Kernels is a shared object that lives in a process which already has libc and libm.
	Kernels Form = iota + 1
	// Library is a shared object that brings its dependencies: libc, libm, threads.
	Library
	// Executable is a program, which keeps its symbols from the objects that it loads.
	Executable
	// Device is code for a device that is loaded by its driver: what clang makes of the only source with the build's
	// flags and no others, after Finish, and what the assembler makes of that, if there is one. Nothing is linked.
	Device
	// Bare is a file for a processor without an operating system: what lld makes of the objects with LinkFlags, and
	// nothing else beside them.
	Bare
)

// File is a named text.
type File struct{ Name, Text string }

// Build is one thing to make.
type Build struct {
	Target *target.Target
	Form   Form
	// Sources are compiled one by one, up to Parallel at a time, and linked together.
	Sources []File
	// Headers are what the sources may include.
	Headers []File
	// Embedded is code for devices that is made first, into files beside the sources, which may take it in by .incbin.
	Embedded []Embedded `json:",omitempty"`
	// Level is the optimisation level; 0 means 2.
	Level int
	// Levels has another level for the sources of some names.
	Levels map[string]int `json:",omitempty"`
	// Flags are further compiler flags.
	Flags []string
	// Libraries are shared libraries to link with, by their sonames. They must be this machine's: a build with any is
	// for its architecture.
	Libraries []string `json:",omitempty"`
	// LinkFlags are the linker's flags for a Bare build. Headers may be scripts for it.
	LinkFlags []string `json:",omitempty"`
	// SOName is the name by which the dynamic linker knows a Library; empty for none.
	SOName string `json:",omitempty"`
	// Finish makes what is kept of code for a device; nil keeps it as it is. It follows from the rest of the build.
	Finish func(code []byte) ([]byte, error) `json:"-"`
	// Assemble are the assembler's flags for code for a device that is finished; none = nothing is assembled.
	Assemble []string `json:",omitempty"`
	// Join puts together what is kept of such code and of what the assembler made of it, which is nil where there is
	// no assembler; nil keeps the code alone, and nothing is assembled. It follows from the rest of the build.
	Join func(code, assembled []byte) []byte `json:"-"`
	// Parallel bounds the compilers that run at once; 0 means 1.
	Parallel int
	Limits   Limits
	// Objects, if not nil, has the objects of earlier builds, and gets those that are compiled now.
	Objects *Objects `json:"-"`
}

// Embedded is a build of code for a device, and the name of the file that it is made into.
type Embedded struct {
	Name  string
	Build Build
}

// KernelLevel is the optimisation level for generated kernels, wherever they are compiled, so that what is measured is
// what runs. Their loops are tiled, unrolled and vectorised already: the higher levels take two to three times as long
// and make them no faster.
const KernelLevel = 1

// OwnLevel is that of kernels that somebody wrote, whose loops the compiler may improve.
const OwnLevel = 3

// AddOwn adds kernels that somebody wrote to the sources.
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

// commonFlags suit generated kernels: contraction to FMA is wanted, errno and exceptions are not, and sums keep the
// order the schedule gave them. Pointers may leave their buffer for a while, where a constant leads back into it.
var commonFlags = []string{"-std=gnu11", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
	"-fno-semantic-interposition", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident", "-fwrapv", "-w", "-I.",
	"-D_FILE_OFFSET_BITS=64"} // weights may be larger than 2 GiB, also on 32 bits

// bareFlags suit programs without an operating system: nothing is there but the compiler's own headers, code stays
// where it was linked to, and the linker leaves out what nobody calls.
var bareFlags = []string{"-ffreestanding", "-fno-pic", "-ffunction-sections", "-fdata-sections"}

// keepOrder makes clang leave the instructions of a kernel in the order in which they were printed. Its scheduler
// hoists loads, which a tile that fills the register file has no registers for: a 4x3 tile of multiply-adds on AVX2
// ran at 11 GFLOP/s with it, its accumulators spilled in every step, and at 92 without. Processors of this
// architecture reorder by themselves.
var keepOrder = []string{"-mllvm", "-enable-misched=false"}

// noReduction leaves the index arithmetic of loops as it was printed: pointers that an instruction's constants and a
// scaled register do the rest for. Replacing them by pointers that are counted up took a sixth to a quarter of the
// time that a kernel compiles.
var noReduction = []string{"-mllvm", "-disable-lsr"}

// alignedStack has kernels align their stack to the vectors that they keep there. Clang learns of these too late
// otherwise, when it has no register left to restore the stack by, and a vector may lie across two lines, or two
// pages: a tile of 7x4 vectors of AVX-512, one register too many, took three times as long with some callers' stacks.
const alignedStack = "-mstackrealign"

// noLifetimes leaves out the marks where the life of each local variable begins and ends. A kernel has hundreds, all
// but a few become registers, and without the marks it compiles 3 to 5 % faster.
var noLifetimes = []string{"-Xclang", "-disable-lifetime-markers"}

// Build compiles and links into the file output, which appears only when all went well. Errors are *Error.
func (tc *Toolchain) Build(ctx context.Context, b Build, output string) error {
	dir, err := os.MkdirTemp(filepath.Dir(output), ".build-*")
	if err != nil {
		return &Error{Kind: Infra, Step: "compiling", Message: err.Error(), Err: err}
	}
	defer os.RemoveAll(dir)
	for _, f := range append(append([]File{}, b.Headers...), b.Sources...) {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			return &Error{Kind: Infra, Step: "writing " + f.Name, Message: err.Error(), Err: err}
		}
	}
	if err := tc.make(ctx, b, dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, linked), output); err != nil {
		return &Error{Kind: Infra, Step: "finishing " + filepath.Base(output), Message: err.Error(), Err: err}
	}
	return nil
}

// make leaves the result of a build in its folder.
func (tc *Toolchain) make(ctx context.Context, b Build, dir string) error {
	if b.Form == Device {
		return tc.device(ctx, b, dir)
	}
	if err := tc.embed(ctx, b, dir); err != nil {
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

// compileAll returns the object files' names in the order of the sources. The first failure ends the others.
func (tc *Toolchain) compileAll(ctx context.Context, b Build, dir string) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	objects := make([]string, len(b.Sources))
	slots := make(chan struct{}, max(b.Parallel, 1))
	var wait sync.WaitGroup
	for k, source := range b.Sources {
		objects[k] = strings.TrimSuffix(source.Name, ".c") + ".o"
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			if err := tc.compile(ctx, b, dir, source.Name, objects[k]); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return objects, abandoned(ctx)
}

// abandoned is the error with which compiling ended; nil when it did not.
func abandoned(ctx context.Context) error {
	err := context.Cause(ctx)
	var failure *Error
	if err != nil && !errors.As(err, &failure) {
		err = &Error{Kind: Infra, Step: "compiling", Message: "abandoned: " + err.Error(), Err: err}
	}
	return err
}

// compile makes an object file of a source, unless an earlier build has left it.
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

// flags are the compiler's flags for a source, beside the target's.
func (tc *Toolchain) flags(b Build, source string) []string {
	level := cmp.Or(b.Levels[source], b.Level)
	if level == 0 {
		level = 2
	}
	flags := append(slices.Clone(commonFlags), "-O"+strconv.Itoa(level))
	if b.Target.IsBare() {
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
