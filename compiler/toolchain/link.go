package toolchain

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// linked is the name of the linker's output inside the scratch directory.
const linked = "linked"

func (tc *Toolchain) link(ctx context.Context, b Build, dir string, objects []string) error {
	step := "linking with " + tc.Name
	if b.Form == Bare {
		return tc.linkBare(ctx, b, dir, objects)
	}
	if ld := linker(b.Target); b.Form == Kernels && ld != "" && len(b.Libraries) == 0 && !b.Imports {
		args := append([]string{"-shared", "-o", linked}, objects...)
		switch needsOf(dir, objects) {
		case needsNothing:
			return b.Limits.run(ctx, step, program{dir: dir, path: ld, args: args, box: tc.box})
		case needsLibraries:
			if b.Target.IsHost() && filepath.Base(ld) != "ld.lld" { // it knows the directories of the libraries
				args = append(args, "--as-needed", "-z", "defs", "-lm", "-lc")
				return b.Limits.run(ctx, step, program{dir: dir, path: ld, args: args, box: tc.box})
			}
		}
	}
	path, flags, err := tc.compiler(b.Target)
	if err != nil {
		return err
	}
	libraries, err := tc.libraries(ctx, b)
	if err != nil {
		return err
	}
	args := append(flags, objects...)
	args = append(append(args, libraries...), "-o", linked)
	args = append(args, tc.driverFlags(b.Target)...)
	switch b.Form {
	case Library:
		// A process may load several libraries with functions of the same names: calls bind within each library.
		args = append(args, "-Wl,-Bsymbolic")
		if b.SOName != "" {
			args = append(args, "-Wl,-soname,"+b.SOName)
		}
		args = append(args, libraryFlags...)
	case Executable:
		// Loaded objects may need libm even if the program itself does not.
		args = append(args, "-pthread", "-Wl,--no-as-needed", "-lm", "-Wl,--as-needed", "-ldl")
		for _, symbols := range b.Exports {
			args = append(args, "-Wl,--export-dynamic-symbol="+symbols)
		}
	default:
		if args = append(args, libraryFlags...); b.Imports {
			args = slices.DeleteFunc(args, func(flag string) bool { return flag == complete })
		}
	}
	return withPackage(b.Target, b.Limits.run(ctx, step, program{dir: dir, path: path, args: args, box: tc.box}))
}

// libraryFlags link a shared object with its dependencies and without undefined symbols.
var libraryFlags = []string{"-shared", "-pthread", "-Wl,--as-needed", "-lm", complete}

const complete = "-Wl,--no-undefined"

// driverFlags selects lld if available: it links for every architecture.
func (tc *Toolchain) driverFlags(t *target.Target) []string {
	if tc.family != "clang" {
		return nil
	}
	if t.IsHost() {
		if _, err := exec.LookPath("ld"); err == nil {
			return nil
		}
	}
	if found := tc.lld(); found != "" {
		return []string{"--ld-path=" + found}
	}
	return nil
}

// lld returns the linker of the compiler's version, or any other version; empty if none exists.
func (tc *Toolchain) lld() string {
	name := strings.Replace(filepath.Base(tc.path), "clang", "ld.lld", 1)
	for _, path := range []string{filepath.Join(filepath.Dir(tc.path), name), name, "ld.lld"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

func (tc *Toolchain) linkBare(ctx context.Context, b Build, dir string, objects []string) error {
	path := ""
	if tc.family == "clang" {
		path = tc.lld()
	}
	if path == "" {
		return &Error{Kind: Infra, Step: "linking for " + b.Target.Arch(), Message: "it needs clang and ld.lld: install clang-19 and lld-19"}
	}
	args := append(append(slices.Clone(b.LinkFlags), objects...), "-o", linked)
	return b.Limits.run(ctx, "linking with lld", program{dir: dir, path: path, args: args, box: tc.box})
}

// memoryFunctions lists the libc functions that compilers call implicitly and that have one symbol version in all
// relevant versions of libc, so that the dynamic linker resolves them without a library.
var memoryFunctions = map[string]bool{"memcpy": true, "memset": true, "memmove": true, "memcmp": true}

// needs classifies the libraries that objects require.
type needs int

const (
	needsNothing   needs = iota // the common case, and three times as fast: no library is read
	needsLibraries              // libm or libc
	needsDriver                 // the compiler's own support library, which only the compiler driver finds
)

func needsOf(dir string, objects []string) needs {
	largest := needsNothing
	for _, name := range objects {
		undefined, err := undefinedSymbols(filepath.Join(dir, name))
		if err != nil {
			return needsDriver
		}
		for _, symbol := range undefined {
			switch {
			case memoryFunctions[symbol] || symbol == "_GLOBAL_OFFSET_TABLE_":
			case strings.HasPrefix(symbol, "__"):
				return needsDriver
			default:
				largest = needsLibraries
			}
		}
	}
	return largest
}

func undefinedSymbols(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("reading the symbols of %s: %w", path, err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Name != "" {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// libraries returns the flags that link a build with its libraries. The error names a library that is not installed.
func (tc *Toolchain) libraries(ctx context.Context, b Build) (flags []string, err error) {
	for _, name := range b.Libraries {
		flag, err := tc.installed(ctx, b, name)
		if err != nil {
			return nil, err
		}
		flags = append(flags, flag)
	}
	return flags, nil
}

// installed returns the flag that links a library: by name if the linker finds it, or by path if this machine's
// loader does, as for CUDA. The error, which explains why the library cannot be linked, is of kind Rejected, since
// the source need not call a library.
func (tc *Toolchain) installed(ctx context.Context, b Build, name string) (flag string, err error) {
	step := "linking with " + name
	if !b.Target.IsHost() {
		return "", &Error{Kind: Rejected, Step: step, Message: "libraries are taken from the machine that compiles, and the target has another architecture: compile on the device"}
	}
	path, flags, err := tc.compiler(b.Target)
	if err != nil {
		return "", err
	}
	found, err := exec.CommandContext(ctx, path, append(flags, "--print-file-name="+name)...).Output()
	if err != nil {
		return "", &Error{Kind: Infra, Step: step, Message: fmt.Sprintf("asking %s for it: %v", tc.Name, err), Err: err}
	}
	if filepath.IsAbs(strings.TrimSpace(string(found))) { // a bare name if it is in none of the linker's directories
		return "-l:" + name, nil
	}
	if path := sandbox.FindLibrary(name); path != "" {
		return path, nil
	}
	return "", &Error{Kind: Rejected, Step: step, Message: "it is not installed on this machine: install the package of the system that has it, or do without the kernel"}
}
