package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Limits on libraries that are queried for their versions.
const (
	answerTime     = 10 * time.Second
	maxAnswerBytes = 4 << 10
	maxMemory      = 4 << 30
)

// PinLibraries returns a kernel with the versions that its libraries have on this machine. The error names a
// library that is missing, has an unsuitable version, or cannot be queried. It runs code of the libraries in a
// sandbox, but none of the kernel.
func PinLibraries(ctx context.Context, tc *Toolchain, t *target.Target, k *userkernel.Kernel) (*userkernel.Kernel, error) {
	if len(k.Libraries) == 0 {
		return k, nil
	}
	versions, err := ask(ctx, tc, t, k.Libraries)
	if err != nil {
		return nil, fmt.Errorf("own kernel %s: %w", k.Name, err)
	}
	return k.Pin(versions)
}

// ask builds and runs the program that prints versions.
func ask(ctx context.Context, tc *Toolchain, t *target.Target, list []userkernel.Library) (versions []string, err error) {
	dir, err := os.MkdirTemp("", "tilth-libraries-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "versions")
	b := Build{Target: t, Form: Executable, Sources: []File{{Name: "versions.c", Text: userkernel.VersionProgram(list)}}}
	for _, l := range list {
		b.Libraries = append(b.Libraries, l.SOName)
	}
	if err := tc.Build(ctx, b, program); err != nil {
		return nil, err
	}
	text, err := runProbe(ctx, dir, program)
	if err != nil {
		return nil, fmt.Errorf("asking %s for versions: %w", strings.Join(b.Libraries, " and "), err)
	}
	versions = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(versions) != len(list) {
		return nil, fmt.Errorf("versions of %s: got %d", strings.Join(b.Libraries, " and "), len(versions))
	}
	for i, v := range versions {
		if v == "" {
			return nil, fmt.Errorf("%s tells no version by %s", list[i].SOName, list[i].Function)
		}
	}
	return versions, nil
}

// runProbe returns the output of a program in a sandbox, with threads of libraries disabled.
func runProbe(ctx context.Context, dir, program string) (_ string, err error) {
	box, err := sandbox.Open(sandbox.BestEffort, filepath.Join(dir, "sandbox"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if err := sandbox.Share(program, true); err != nil {
		return "", err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer read.Close()
	p, err := startProbe(box, program, write)
	if err = errors.Join(err, write.Close()); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	defer context.AfterFunc(ctx, p.KillGroup)()
	text, failed := io.ReadAll(io.LimitReader(read, maxAnswerBytes))
	state, _, err := p.Finish()
	switch err = errors.Join(err, failed); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("no answer: %w", ctx.Err())
	case err == nil && !state.Success():
		err = errors.New(state.String())
	}
	return string(text), err
}

func startProbe(box *sandbox.Sandbox, program string, output *os.File) (*sandbox.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return box.Start(sandbox.Command{Program: program, Environment: []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"},
		Descriptors: []*os.File{null, output, null}, Limits: sandbox.Limits{MemoryBytes: maxMemory, ProcessorTime: answerTime, OpenFiles: 64}})
}
