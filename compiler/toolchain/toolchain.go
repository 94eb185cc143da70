package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Variable is the environment variable that names the compiler to use instead of the newest clang found.
const Variable = "TILTH_CC"

// Toolchain is a C compiler with its linkers.
type Toolchain struct {
	// Name is the family and version, e.g. "clang-19.1.7" or "gcc-12.2.0".
	Name string
	// path is the compiler's executable.
	path string
	// family is clang or gcc.
	family string
	// assembler returns the assembler for NVIDIA GPUs; nil if none exists.
	assembler func() *assembler
	// box is the sandbox for compilers and linkers.
	box *sandbox.Sandbox
	// servers keep the compiler in memory; if nil, it is loaded for each run.
	servers *servers
}

// In returns the same toolchain in a sandbox. It uses only the layers that are compatible with compilers: no
// network, and no privileges.
func (tc *Toolchain) In(box *sandbox.Sandbox) *Toolchain {
	confined := *tc
	confined.box = box.Only(sandbox.Network, sandbox.IPC, sandbox.Hostname, sandbox.Privileges)
	confined.servers = confined.newServers()
	return &confined
}

const remedy = "install clang (apt-get install clang-19 lld-19) or gcc, or set " + Variable + " to a compiler"

// Find returns the compiler named by override (a path or a name on PATH) or, if that is empty, the newest clang on
// PATH, or gcc. The error is of kind Infra.
func Find(ctx context.Context, override string) (*Toolchain, error) {
	path, err := locate(override)
	if err != nil {
		return nil, &Error{Kind: Infra, Step: "finding a compiler", Message: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, &Error{Kind: Infra, Step: "finding a compiler", Message: fmt.Sprintf("%s --version: %v; %s", path, err, remedy)}
	}
	family, version, err := parseVersion(string(text))
	if err != nil {
		return nil, &Error{Kind: Infra, Step: "finding a compiler", Message: fmt.Sprintf("%s: %v; %s", path, err, remedy)}
	}
	tc := &Toolchain{Name: family + "-" + version, path: path, family: family}
	if tc.assembler, err = findAssembler(ctx, path, os.Getenv(AssemblerVariable)); err != nil {
		return nil, err
	}
	tc.servers = tc.newServers()
	return tc, nil
}

// versionTimeout limits the time a compiler may take to print its version; network file systems are slow at first use.
const versionTimeout = 30 * time.Second

func locate(override string) (string, error) {
	if override != "" {
		path, err := exec.LookPath(override)
		if err != nil {
			return "", fmt.Errorf("compiler %q cannot be run (%w); %s", override, err, remedy)
		}
		return path, nil
	}
	if path := newestClang(filepath.SplitList(os.Getenv("PATH"))); path != "" {
		return path, nil
	}
	for _, name := range []string{"clang", "gcc", "cc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no C compiler on PATH; " + remedy)
}

// newestClang returns the clang-NN with the largest NN; among equals, the first on the path.
func newestClang(dirs []string) string {
	best, bestVersion := "", 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "clang-[0-9]*"))
		if err != nil {
			continue
		}
		for _, file := range files {
			version, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(file), "clang-"))
			if err != nil || version <= bestVersion {
				continue
			}
			if _, err := exec.LookPath(file); err == nil {
				best, bestVersion = file, version
			}
		}
	}
	return best
}

var (
	clangVersion = regexp.MustCompile(`clang version (\d+\.\d+\.\d+)`)
	gccVersion   = regexp.MustCompile(`(?i)^[^\n]*(?:gcc|cc) [^\n]*?(\d+\.\d+\.\d+)`)
)

func parseVersion(text string) (family, version string, err error) {
	if m := clangVersion.FindStringSubmatch(text); m != nil {
		return "clang", m[1], nil
	}
	if m := gccVersion.FindStringSubmatch(text); m != nil {
		return "gcc", m[1], nil
	}
	line, _, _ := strings.Cut(text, "\n")
	return "", "", fmt.Errorf("%q is neither clang's nor gcc's version", line)
}

// compiler returns the executable and the machine flags for a target.
func (tc *Toolchain) compiler(t *target.Target) (string, []string, error) {
	if tc.family == "clang" {
		return tc.path, append(t.ClangFlags(), "-fno-crash-diagnostics"), nil
	}
	if t.SVEBytes() > 0 { // gcc 12 miscompiled products of bytes, clang did not
		return "", nil, &Error{Kind: Infra, Step: "compiling for SVE",
			Message: fmt.Sprintf("%s is not used for SVE registers, of which gcc 12 made wrong code; install clang, or compile for --target arm64", tc.Name)}
	}
	if t.IsHost() {
		return tc.path, t.GCCFlags(), nil
	}
	name := t.GCC()
	path, err := exec.LookPath(name)
	if err != nil {
		return "", nil, &Error{Kind: Infra, Step: "compiling for " + t.Arch(),
			Message: fmt.Sprintf("%s makes no code for %s; install clang or %s", tc.Name, t.Arch(), name)}
	}
	return path, t.GCCFlags(), nil
}

// linker returns a linker to call directly, which saves starting the compiler again; GNU ld starts in a tenth of
// the time of a dynamically linked lld. It returns the empty string if none exists.
func linker(t *target.Target) string {
	names := []string{t.Triple() + "-ld", "ld.lld"}
	if t.IsHost() {
		names = slices.Insert(names, 1, "ld")
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Path returns the compiler's executable.
func (tc *Toolchain) Path() string { return tc.path }

// Key identifies the result of a build: equal keys mean equal output. Limits and parallelism do not affect it.
func (tc *Toolchain) Key(b Build) string {
	b.Limits, b.Parallel = Limits{}, 0
	b.Target = b.Target.WithToolchain(tc.For(b.Target))
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Identity identifies a compiler by its executable's path, size and modification time, which change when it is
// replaced.
func Identity(compiler string) string {
	real, err := filepath.EvalSymlinks(compiler)
	if err != nil {
		return compiler
	}
	info, err := os.Stat(real)
	if err != nil {
		return compiler
	}
	return fmt.Sprintf("%s %d %d", real, info.Size(), info.ModTime().UnixNano())
}
