package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/machine.c
var machineSource string

// machine is what all threads of a machine together can do at most.
type machine struct {
	FlopPerSecond float64 `json:"flop_per_second"`
	// Stores are the caches that are worth telling apart and the memory, fastest first.
	Stores []store `json:"stores"`
}

// store is where data may lie.
type store struct {
	Name           string  `json:"name"`
	Bytes          int64   `json:"bytes"` // that it holds for all threads together
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// memoryBytes is far more than any cache holds.
const memoryBytes = 1 << 40

// storesOf are the stores of a target, their rates still unknown.
func storesOf(t *target.Target) []store {
	list := []store{{Name: "L2", Bytes: t.L2Bytes * int64(t.Threads)}, {Name: "L3", Bytes: t.L3Bytes}, {Name: "memory", Bytes: memoryBytes}}
	if t.L3Bytes == 0 {
		list = append(list[:1], list[2])
	}
	return list
}

// measureMachine times multiply-adds in registers and reads of each store; launcher stands before the command.
func measureMachine(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (machine, error) {
	path := filepath.Join(dir, "machine")
	build := toolchain.Build{Target: t, Form: toolchain.Executable, Sources: []toolchain.File{{Name: "machine.c", Text: machineSource}},
		Flags: []string{fmt.Sprintf("-DVECTOR_BYTES=%d", t.VectorBytes)}}
	if err := tc.Build(ctx, build, path); err != nil {
		return machine{}, err
	}
	m := machine{Stores: storesOf(t)}
	command := append(append([]string{}, launcher...), path, strconv.Itoa(t.Threads))
	for _, s := range m.Stores {
		command = append(command, strconv.FormatInt(s.Bytes/2, 10)) // what fits well
	}
	text, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if err != nil {
		return machine{}, fmt.Errorf("measuring the machine: %w", err)
	}
	rates := []any{&m.FlopPerSecond}
	for k := range m.Stores {
		rates = append(rates, &m.Stores[k].BytesPerSecond)
	}
	if _, err := fmt.Sscan(string(text), rates...); err != nil {
		return machine{}, fmt.Errorf("measuring the machine: %q: %w", text, err)
	}
	return m, nil
}

func (m machine) String() string {
	parts := []string{fmt.Sprintf("%.0f GFLOP/s", m.FlopPerSecond/1e9)}
	for _, s := range m.Stores {
		parts = append(parts, fmt.Sprintf("%s %.0f GB/s", s.Name, s.BytesPerSecond/1e9))
	}
	return strings.Join(parts, ", ")
}

// limits are the least seconds a workload can take: for its operations, each sum computed directly, and for reading and writing
// each argument once. Constants come from memory, where the harness puts them before each sample and where they are in a model; inputs
// and outputs lie in the fastest store, and what it does not hold in the next.
func (m machine) limits(w workload) (arithmetic, bytes float64) {
	constants, others := w.bytes()
	bytes = float64(constants) / m.Stores[len(m.Stores)-1].BytesPerSecond
	for _, s := range m.Stores {
		part := min(others, s.Bytes)
		others -= part
		bytes += float64(part) / s.BytesPerSecond
	}
	return w.flop / m.FlopPerSecond, bytes
}

// bytes are those of the constants, and of inputs and outputs.
func (w workload) bytes() (constants, others int64) {
	size := func(list []*expr.Tensor) (total int64) {
		for _, t := range list {
			total += array.Elements(t.Shape) * t.DType.Bytes()
		}
		return total
	}
	return size(w.Constants), size(w.Inputs) + size(w.Outputs)
}
