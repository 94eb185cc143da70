package installed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/own"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// answerTime bounds how long libraries may take until they have told their versions.
const answerTime = 10 * time.Second

// Pin is a kernel with the versions that its libraries have on this machine. The error says which one is missing, is
// another than the kernel is for, or cannot be asked. It runs code of the libraries in a process of its own, and none
// of the kernel.
func Pin(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, k *own.Kernel) (*own.Kernel, error) {
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
func ask(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, list []own.Library) (versions []string, err error) {
	dir, err := os.MkdirTemp("", "tilth-libraries-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "versions")
	b := toolchain.Build{Target: t, Form: toolchain.Executable, Sources: []toolchain.File{{Name: "versions.c", Text: own.VersionProgram(list)}}}
	for _, l := range list {
		b.Libraries = append(b.Libraries, l.SOName)
	}
	if err := tc.Build(ctx, b, program); err != nil {
		return nil, err
	}
	text, err := run(ctx, program)
	if err != nil {
		return nil, fmt.Errorf("asking %s for versions: %w", strings.Join(b.Libraries, " and "), err)
	}
	versions = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(versions) != len(list) {
		return nil, fmt.Errorf("asking %s for versions: %d answers", strings.Join(b.Libraries, " and "), len(versions))
	}
	for i, v := range versions {
		if v == "" {
			return nil, fmt.Errorf("%s tells no version by %s", list[i].SOName, list[i].Function)
		}
	}
	return versions, nil
}

// run is what a program prints. It gets no environment, and libraries are told to start no threads.
func run(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Env = []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}
	c.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		line, _, _ := strings.Cut(complaint.String(), "\n")
		return "", fmt.Errorf("%w: %.200s", err, line)
	}
	return out.String(), nil
}
