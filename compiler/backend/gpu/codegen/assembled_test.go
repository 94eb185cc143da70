package codegen_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// usage is a kernel's use of resources per thread.
type usage struct {
	kernel             string
	registers, spilled int
}

// ptxas returns the path and version of NVIDIA's assembler, or empty strings.
var ptxas = sync.OnceValues(func() (path, version string) {
	path, err := exec.LookPath(cmp.Or(os.Getenv(toolchain.AssemblerVariable), "ptxas"))
	if err != nil {
		return "", ""
	}
	text, _ := exec.Command(path, "--version").Output() // without a version it is not ptxas
	if m := regexp.MustCompile(`\bV(\d+\.\d+\.\d+)`).FindSubmatch(text); m != nil {
		return path, string(m[1])
	}
	return "", ""
})

// hasAssembler reports whether an assembler for an instruction set is available.
func hasAssembler(arch string) bool {
	path, version := ptxas()
	return path != "" && (&target.Target{GPU: &target.GPU{Arch: arch}}).Assembles(version)
}

var perKernel = regexp.MustCompile(`(?s)Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers`)

// assemble assembles PTX and returns the resources of its kernels. It returns an error if the assembler refuses the
// input.
func assemble(t testing.TB, arch, text string) (list []usage, err error) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "kernels.ptx")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path, _ := ptxas()
	said, err := exec.CommandContext(t.Context(), path, "-v", "-arch="+arch, source, "-o", filepath.Join(dir, "cubin")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	// For example, warpgroup products that are serialised because their results were moved in between.
	if bytes.Contains(said, []byte("Potential Performance Loss")) {
		return nil, fmt.Errorf("the assembler warns: %s", said)
	}
	for _, m := range perKernel.FindAllSubmatch(said, -1) {
		u := usage{kernel: string(m[1])}
		for at, number := range map[int]*int{2: &u.spilled, 3: &u.registers} {
			if *number, err = strconv.Atoi(string(m[at])); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, u)
	}
	return list, nil
}
