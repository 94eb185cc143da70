package toolchain

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/target"
)

// AssemblerVariable is the environment variable that names NVIDIA's assembler, ptxas, or their library nvJitLink.
// The value "off" disables both.
const AssemblerVariable = "TILTH_PTXAS"

// assembler translates PTX to code for NVIDIA GPUs. Without one, the driver does so at load time.
type assembler struct {
	// name is for example ptxas-12.4.131 or nvjitlink-12.4.
	name    string
	version string
	program program
}

var assemblerVersion = regexp.MustCompile(`(?m)\bV(\d+\.\d+(?:\.\d+)?)\b`)

// findAssembler returns a function that returns the assembler: the one that override names, or an installed one,
// which is searched for on first use and may be nil. cc compiles for this machine.
func findAssembler(ctx context.Context, cc, override string) (func() *assembler, error) {
	switch override {
	case "off":
		return nil, nil
	case "":
		ctx = context.WithoutCancel(ctx)
		return sync.OnceValue(func() *assembler { return installedAssembler(ctx, cc) }), nil
	}
	a, err := assemblerAt(ctx, cc, override)
	if err != nil {
		return nil, &Error{Kind: Infra, Step: "finding an assembler", Message: fmt.Sprintf("%s: %v; unset or correct %s, or set it to off", override, err, AssemblerVariable)}
	}
	return func() *assembler { return a }, nil
}

// installedAssembler returns the ptxas on PATH, or the installed library; nil if neither works, since they are
// optional.
func installedAssembler(ctx context.Context, cc string) *assembler {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	for _, path := range append([]string{"ptxas"}, FindJITLink(gnuArches[runtime.GOARCH])...) {
		if a, err := assemblerAt(ctx, cc, path); err == nil {
			return a
		}
	}
	return nil
}

// gnuArches maps architectures of machines with GPUs to GNU names.
var gnuArches = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// assemblerAt returns the assembler at path, a command or the library.
func assemblerAt(ctx context.Context, cc, path string) (*assembler, error) {
	a := &assembler{name: "ptxas-"}
	var err error
	if NamesJITLink(path) {
		a.name = "nvjitlink-"
		a.program, err = linking(ctx, cc, path)
	} else {
		a.program.path, err = exec.LookPath(path)
	}
	if err != nil {
		return nil, err
	}
	a.version, err = a.program.version(ctx)
	a.name += a.version
	return a, err
}

// linking returns the command that runs the library.
func linking(ctx context.Context, cc, library string) (program, error) {
	library, err := filepath.Abs(library)
	if err != nil {
		return program{}, err
	}
	command, err := compileTemporary(ctx, cc, JITLinkSource, "-ldl")
	return program{path: cc, executable: command, args: []string{library}}, err
}

// version returns the version of a program.
func (p program) version(ctx context.Context) (string, error) {
	p.args, p.dir = append(slices.Clone(p.args), "--version"), os.TempDir()
	said, exit, err := Limits{}.withDefaults().finish(ctx, p)
	m := assemblerVersion.FindStringSubmatch(said)
	switch {
	case err != nil:
		return "", err
	case exit.Status != 0:
		return "", fmt.Errorf("--version: %s", cmp.Or(usefulLine(said), ending(exit.Status)))
	case m == nil:
		return "", errors.New("it does not tell its version")
	}
	return m[1], nil
}

// assemblerFor returns the assembler for a target, or nil. It searches for one only if the target is a GPU.
func (tc *Toolchain) assemblerFor(t *target.Target) *assembler {
	if tc.assembler == nil || !t.Assembled() {
		return nil
	}
	if a := tc.assembler(); a != nil && t.Assembles(a.version) {
		return a
	}
	return nil
}

// For returns the toolchain name for a target, under which records are kept: the compiler's name, followed by that
// of the assembler if it is used.
func (tc *Toolchain) For(t *target.Target) string {
	if a := tc.assemblerFor(t); a != nil {
		return tc.Name + behind + a.name
	}
	return tc.Name
}

// behind separates the names of a compiler and its assembler.
const behind = "+"

// Names returns the names that For returns, for any target.
func (tc *Toolchain) Names() []string {
	if tc.assembler != nil {
		if a := tc.assembler(); a != nil {
			return []string{tc.Name, tc.Name + behind + a.name}
		}
	}
	return []string{tc.Name}
}

// As returns the toolchain of the given name: this one, or the same without its assembler. It returns an error for
// other names.
func (tc *Toolchain) As(name string, t *target.Target) (*Toolchain, error) {
	switch name {
	case tc.For(t):
		return tc, nil
	case tc.Name:
		plain := *tc
		plain.assembler = nil
		return &plain, nil
	}
	return nil, &Error{Kind: Infra, Step: "choosing a toolchain", Message: fmt.Sprintf("the job wants %s, this builder has %s", name, strings.Join(tc.Names(), " and "))}
}

// Suits reports whether the named toolchain generates code for a target.
func Suits(name string, t *target.Target) bool {
	_, assembler, has := strings.Cut(name, behind)
	_, version, _ := strings.Cut(assembler, "-")
	return !has || t.Assembles(version)
}

// Assembles reports whether the named toolchain includes an assembler.
func Assembles(name string) bool { return strings.Contains(name, behind) }

// assembly is the file name of the assembler's output.
const assembly = "assembly"

// assemble assembles a file in the build directory; it returns nil if the toolchain has no assembler for the target.
func (tc *Toolchain) assemble(ctx context.Context, b Build, dir, source string) ([]byte, error) {
	a := tc.assemblerFor(b.Target)
	if len(b.Assemble) == 0 || a == nil {
		return nil, nil
	}
	step := fmt.Sprintf("assembling %s with %s", b.Sources[0].Name, a.name)
	p := a.program
	p.dir, p.box, p.args = dir, tc.box, slices.Concat(p.args, b.Assemble, []string{source, "-o", assembly})
	if err := b.Limits.run(ctx, step, p); err != nil {
		return nil, err
	}
	code, err := os.ReadFile(filepath.Join(dir, assembly))
	if err != nil {
		return nil, &Error{Kind: Infra, Step: step, Message: err.Error(), Err: err}
	}
	return code, nil
}

// JITLinkSource is the C source of a command that assembles PTX with NVIDIA's library nvJitLink where there is no
// ptxas. The library contains the same assembler, and comes with CUDA 12.3 and later and with PyTorch's packages. A
// separate process loads it, so that a crash affects that process alone. Compile the source for this machine and
// link it with -ldl. Its arguments are the library and --version, or the library, the assembler's flags, a PTX
// file, -o and an output file.
//
//go:embed src/jitlink.c
var JITLinkSource string

// names lists the library's names by major version, newest first.
var names = []string{"libnvJitLink.so.13", "libnvJitLink.so.12"}

// NamesJITLink reports whether a path is that of the library rather than a command.
func NamesJITLink(path string) bool { return strings.HasPrefix(filepath.Base(path), "libnvJitLink.so") }

// FindJITLink returns candidate paths of the library, newest major version first: in the loader's search path, and
// in the directories of CUDA and distributions for a GNU architecture such as x86_64. Some of them may not work.
func FindJITLink(arch string) (paths []string) {
	dirs := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), "/usr/local/cuda/lib64", "/usr/lib64", "/usr/lib/"+arch+"-linux-gnu")
	for _, name := range names {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
