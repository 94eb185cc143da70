package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/machine.c
var machineSource string

// machine is what all threads of a machine together can do at most.
type machine struct {
	flopPerSecond, bytesPerSecond float64
}

// measureMachine times multiply-adds in registers and reads of memory; launcher stands before the command.
func measureMachine(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (machine, error) {
	path := filepath.Join(dir, "machine")
	build := toolchain.Build{Target: t, Form: toolchain.Executable, Sources: []toolchain.File{{Name: "machine.c", Text: machineSource}},
		Flags: []string{fmt.Sprintf("-DVECTOR_BYTES=%d", t.VectorBytes)}}
	if err := tc.Build(ctx, build, path); err != nil {
		return machine{}, err
	}
	command := append(append([]string{}, launcher...), path, strconv.Itoa(t.Threads))
	text, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if err != nil {
		return machine{}, fmt.Errorf("measuring the machine: %w", err)
	}
	var m machine
	if _, err := fmt.Sscan(string(text), &m.flopPerSecond, &m.bytesPerSecond); err != nil {
		return machine{}, fmt.Errorf("measuring the machine: %q: %w", text, err)
	}
	return m, nil
}

// limit is the least time a workload can take when its tensors come from memory and go there once, and what decides it.
func (m machine) limit(w workload) (seconds float64, by string) {
	arithmetic, memory := w.flop/m.flopPerSecond, float64(w.bytes())/m.bytesPerSecond
	if arithmetic >= memory {
		return arithmetic, "arithmetic"
	}
	return memory, "memory"
}

// bytes are those of all arguments.
func (w workload) bytes() int64 {
	total := int64(0)
	for _, t := range w.Args() {
		total += array.Elements(t.Shape) * t.DType.Bytes()
	}
	return total
}
