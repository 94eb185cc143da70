package macros

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// build is one way to compile and run simulations.
type build struct {
	name, compiler string
	flags          []string
	// emulator runs programs for another architecture.
	emulator string
}

var clang = build{name: "clang", compiler: "clang-19", flags: []string{"-O1"}}

var builds = []build{
	clang,
	{name: "gcc", compiler: "gcc", flags: []string{"-O1"}},
	{name: "arm64", compiler: "clang-19", flags: append(arm64Flags(), "-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"), emulator: "qemu-aarch64"},
}

func arm64Flags() []string {
	d, err := target.Parse("arm64", 1)
	if err != nil {
		panic(err)
	}
	return d.CPU.ClangFlags()
}

// read returns a file of testdata.
func read(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run compiles kernels with a host program that launches them in the simulator on the given number of workers, and
// runs it. It returns the combined output of both streams.
func (b build) run(t testing.TB, kernels, host string, workers int) (output string, err error) {
	t.Helper()
	text := cruntime.Header + Simulated() + kernels + "\n#line 1 \"host\"\n" + read(t, "hosts", "host.h") + host
	flags := append([]string{"-std=gnu11", "-fwrapv", "-ffp-contract=off", "-w", "-pthread"}, b.flags...)
	if testing.Short() {
		flags = append(flags, "-O0") // compiles in less than half the time
	}
	program, err := toolchaintest.Program(t, b.compiler, flags, text)
	if err != nil {
		t.Fatal(err)
	}
	// The number of workers is the number of arguments, including the program's name.
	command := append([]string{program}, slices.Repeat([]string{"."}, workers-1)...)
	if b.emulator != "" {
		command = append([]string{b.emulator}, command...)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// kernelNames returns the files of testdata/kernels, each of which has a host.
func kernelNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "kernels", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no kernels: %v", err)
	}
	for k, f := range files {
		files[k] = strings.TrimSuffix(filepath.Base(f), ".c")
	}
	return files
}
