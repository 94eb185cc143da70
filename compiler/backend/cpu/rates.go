package cpu

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/machine.c
var source string

// Measure implements backend.Devices. It times multiply-adds in registers and reads from each level of memory on as
// many threads as the target has. It takes about half a second and builds in dir, which must exist. The result is
// valid only if nothing else computes on the machine. launcher is an optional prefix of the command.
func (Backend) Measure(ctx context.Context, tc *toolchain.Toolchain, t *target.Target, dir string, launcher []string) (roofline.Rates, error) {
	path := filepath.Join(dir, "machine")
	if err := tc.Build(ctx, build(t), path); err != nil {
		return roofline.Rates{}, err
	}
	m := roofline.Rates{Stores: storesOf(t)}
	command := append(append([]string{}, launcher...), path, strconv.Itoa(t.CPU.Threads))
	for _, s := range m.Stores {
		command = append(command, strconv.FormatInt(s.Bytes/2, 10)) // fits comfortably
	}
	var cpus []int
	if len(launcher) == 0 {
		cpus = t.Affinity()
	}
	var text []byte
	err := target.RunOn(cpus, func() (err error) {
		text, err = exec.CommandContext(ctx, command[0], command[1:]...).Output()
		return err
	})
	if err != nil {
		return roofline.Rates{}, fmt.Errorf("measuring the machine: %w", err)
	}
	rates := []any{&m.FlopPerSecond}
	for k := range m.Stores {
		rates = append(rates, &m.Stores[k].BytesPerSecond)
	}
	if _, err := fmt.Sscan(string(text), rates...); err != nil {
		return roofline.Rates{}, fmt.Errorf("measuring the machine: %q: %w", text, err)
	}
	return m, m.Check()
}

// storesOf returns the memory levels of a target, with unknown rates.
func storesOf(t *target.Target) []roofline.Store {
	list := []roofline.Store{{Name: "L2", Bytes: t.CPU.L2Bytes * int64(t.CPU.Threads)}, {Name: "L3", Bytes: t.CPU.L3Bytes}, {Name: "memory", Bytes: roofline.MemoryBytes}}
	if t.CPU.L3Bytes == 0 {
		list = append(list[:1], list[2])
	}
	return list
}

// build returns the build of the program that measures a target.
func build(t *target.Target) toolchain.Build {
	return toolchain.Build{Target: t, Form: toolchain.Executable, Sources: []toolchain.File{{Name: "machine.c", Text: source}},
		Flags: []string{fmt.Sprintf("-DVECTOR_BYTES=%d", t.CPU.VectorBytes)}}
}

// Between implements backend.Devices. It estimates the rates of a target from those of the same machine with fewer and
// with more threads. Arithmetic and caches scale with threads, but a few threads may saturate the memory.
func (Backend) Between(few, many backend.Measured, t *target.Target) roofline.Rates {
	fewThreads, manyThreads := few.Target.CPU.Threads, many.Target.CPU.Threads
	if manyThreads <= fewThreads || len(few.Rates.Stores) != len(many.Rates.Stores) {
		return many.Rates
	}
	share := float64(t.CPU.Threads-fewThreads) / float64(manyThreads-fewThreads)
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	r := roofline.Rates{FlopPerSecond: mix(few.Rates.FlopPerSecond, many.Rates.FlopPerSecond), Stores: storesOf(t)}
	last := len(r.Stores) - 1
	for i := range r.Stores {
		r.Stores[i].BytesPerSecond = mix(few.Rates.Stores[i].BytesPerSecond, many.Rates.Stores[i].BytesPerSecond)
	}
	alone := few.Rates.Stores[last].BytesPerSecond / float64(fewThreads)
	r.Stores[last].BytesPerSecond = min(many.Rates.Stores[last].BytesPerSecond, alone*float64(t.CPU.Threads))
	return r
}
