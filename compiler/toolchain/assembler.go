package toolchain

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

// AssemblerVariable is the environment variable that names NVIDIA's assembler, ptxas, where it is not on PATH, or says
// off.
const AssemblerVariable = "TILTH_PTXAS"

// assembler makes code for NVIDIA's cards of PTX; without one, their driver does when it loads it.
type assembler struct {
	path string
	// version is such as 12.4.131.
	version string
}

var assemblerVersion = regexp.MustCompile(`(?m)\bV(\d+\.\d+\.\d+)\b`)

// findAssembler is the one that override names, or else the one on PATH; nil when there is none.
func findAssembler(ctx context.Context, override string) (*assembler, error) {
	if override == "off" {
		return nil, nil
	}
	path, err := exec.LookPath(cmp.Or(override, "ptxas"))
	if err != nil && override == "" {
		return nil, nil
	}
	broken := func(why string) error {
		return &Error{Kind: Infra, Step: "finding an assembler", Message: fmt.Sprintf("%s: %s; unset or correct %s, or set it to off", cmp.Or(path, override), why, AssemblerVariable)}
	}
	if err != nil {
		return nil, broken(err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	m := assemblerVersion.FindSubmatch(text)
	switch {
	case m != nil && err == nil:
	case override == "": // nobody asked for what is on PATH
		return nil, nil
	case err != nil:
		return nil, broken("--version: " + err.Error())
	default:
		return nil, broken("it does not tell its version")
	}
	return &assembler{path, string(m[1])}, nil
}

// For is the name of what makes code for a target, by which its records are kept: the compiler's, and behind it the
// assembler's where it is used.
func (tc *Toolchain) For(t *target.Target) string {
	if tc.assembler == nil || !t.Assembles(tc.assembler.version) {
		return tc.Name
	}
	return tc.Name + assembled + tc.assembler.version
}

// assembled stands between the names of a compiler and of the assembler behind it.
const assembled = "+ptxas-"

// Names are those that For gives, for any target.
func (tc *Toolchain) Names() []string {
	if tc.assembler == nil {
		return []string{tc.Name}
	}
	return []string{tc.Name, tc.Name + assembled + tc.assembler.version}
}

// As is the toolchain of a name: this one, or the same without its assembler. The error says that it is another.
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

// Suits reports whether the toolchain of a name makes code for a target.
func Suits(name string, t *target.Target) bool {
	_, version, has := strings.Cut(name, assembled)
	return !has || t.Assembles(version)
}

// Assembles reports whether the toolchain of a name has an assembler.
func Assembles(name string) bool { return strings.Contains(name, assembled) }

// assembly is what the assembler made.
const assembly = "assembly"

// assemble makes code of what is in a file of the folder; nil where the toolchain has no assembler for the target.
func (tc *Toolchain) assemble(ctx context.Context, b Build, dir, source string) ([]byte, error) {
	if len(b.Assemble) == 0 || tc.For(b.Target) == tc.Name {
		return nil, nil
	}
	step := fmt.Sprintf("assembling %s with ptxas-%s", b.Sources[0].Name, tc.assembler.version)
	args := append(append([]string{}, b.Assemble...), source, "-o", assembly)
	if err := b.Limits.run(ctx, step, program{dir: dir, path: tc.assembler.path, args: args, box: tc.box}); err != nil {
		return nil, err
	}
	code, err := os.ReadFile(filepath.Join(dir, assembly))
	if err != nil {
		return nil, &Error{Kind: Infra, Step: step, Message: err.Error(), Err: err}
	}
	return code, nil
}
