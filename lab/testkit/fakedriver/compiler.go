package fakedriver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
)

// CompilerVariable is the environment variable that names the clang that Compiler runs.
const CompilerVariable = "TILTH_FAKE_CLANG"

// Compiler runs clang with this program's arguments and returns its exit status. For GPU kernels it also builds the
// code that the fake driver executes, beside the driver that the environment names, so that commands run as with a
// GPU. It must have write access there.
func Compiler() int {
	args := os.Args[1:]
	status := run(args)
	if status != 0 || !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--target=nvptx64") }) {
		return status
	}
	if err := addPlayer(args); err != nil {
		fmt.Fprintln(os.Stderr, "error: making a player:", err)
		return 1
	}
	return 0
}

// WriteCompiler writes a command that runs program, whose main must call Compiler. The toolchain does not pass our
// environment variables to compilers, so the command sets them.
func (d *Driver) WriteCompiler(path, clang, program string) error {
	text := fmt.Sprintf("#!/bin/sh\n%s='%s' %s='%s' exec '%s' \"$@\"\n", CompilerVariable, clang, cuda.DriverVariable, d.Library(), program)
	return os.WriteFile(path, []byte(text), 0o700) // a command
}

// run runs clang.
func run(args []string) int {
	cmd := exec.Command(os.Getenv(CompilerVariable), args...) // the test selects it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// addPlayer builds the host version of the compiled kernels and appends its name to the compiler's output.
func addPlayer(args []string) error {
	at := slices.Index(args, "-o")
	source := slices.IndexFunc(args, func(a string) bool { return strings.HasSuffix(a, ".c") })
	if at < 0 || at+1 == len(args) || source < 0 {
		return errors.New("these are not the arguments of a compilation")
	}
	text, err := os.ReadFile(args[source])
	if err != nil {
		return err
	}
	kernels, isKernels := bytes.CutPrefix(text, []byte(macros.NVPTX()))
	if !isKernels {
		return errors.New("there are no kernels for a GPU")
	}
	name := fmt.Sprintf("%.8x.so", sha256.Sum256(kernels))
	path := filepath.Join(filepath.Dir(os.Getenv(cuda.DriverVariable)), name)
	if err := makePlayer(string(kernels), path); err != nil {
		return err
	}
	made, err := os.OpenFile(args[at+1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(made, "// player %s\n", name)
	return errors.Join(err, made.Close())
}

// makePlayer compiles kernels for the simulated GPU without optimisation, which would take longer than running them.
func makePlayer(kernels, path string) error {
	dir, err := os.MkdirTemp("", "tilth-player-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source, made := filepath.Join(dir, "player.c"), filepath.Join(dir, "player.so")
	if err := os.WriteFile(source, []byte(cruntime.Header+macros.Simulated()+kernels+players(kernels)), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(os.Getenv(CompilerVariable), "-O0", "-std=gnu11", "-w", "-shared", "-fPIC", "-fuse-ld=lld", source, "-lm", "-o", made)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	// Concurrent compilations may build the same library.
	library, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	whole := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(whole, library, 0o700); err != nil { // a shared library
		return err
	}
	return os.Rename(whole, path)
}
