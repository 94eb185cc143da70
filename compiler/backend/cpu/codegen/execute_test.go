package codegen

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// runLimit bounds a compilation or run. Sanitizers take seconds on a loaded machine; a hung kernel never ends.
const runLimit = 5 * time.Minute

// mode is one way to compile and run kernels.
type mode struct {
	name     string
	target   string
	features []string // in addition to those of the target
	compiler string
	flags    []string
	// emulator runs the program if this machine cannot.
	emulator string
	// model is C that precedes the kernels and replaces instructions that no available machine has.
	model string
}

var modes = []mode{
	{name: "avx512", target: "x86-64-v4", compiler: "clang-19", flags: []string{"-O2"}},
	{name: "avx2", target: "x86-64-v3", compiler: "clang-19", flags: []string{"-O1"}},
	{name: "gcc", target: "x86-64-v3", compiler: "gcc", flags: []string{"-O1"}},
	{name: "neon", target: "arm64", compiler: "clang-19", flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
	{name: "sanitized", target: "x86-64-v4", compiler: "clang-19", flags: []string{"-O1", "-g1", "-fsanitize=address,undefined,float-cast-overflow",
		"-fno-sanitize-recover=undefined,float-cast-overflow", "-fno-sanitize=alignment", "-ftrivial-auto-var-init=pattern"}},
}

// sve has registers of 256 bits, for which compilers emit other instructions than for Neon.
var sve = mode{name: "sve", target: "neoverse-v1", compiler: "clang-19", flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"},
	emulator: "qemu-aarch64 -cpu max,sve256=on,sve512=off"}

// quick returns the named modes of all in the quick tier, and all of them in the slow tier.
func quick(all []mode, names ...string) []mode {
	if !testing.Short() {
		return all
	}
	var list []mode
	for _, m := range all {
		if slices.Contains(names, m.name) {
			list = append(list, m)
		}
	}
	if len(list) != len(names) {
		panic(fmt.Sprintf("no modes of all these names: %v", names))
	}
	return list
}

func (m mode) description(t testing.TB) *target.Target {
	d, err := target.Parse(m.target, 1)
	if err != nil {
		t.Fatal(err)
	}
	d.CPU.Features = slices.Sorted(slices.Values(slices.Concat(d.CPU.Features, m.features)))
	return d
}

// source returns the translation unit of the cases, and the numbers of those whose schedules cannot be lowered with
// the reason.
func (m mode) source(t testing.TB, cases []kerneltest.Case) (text string, refused map[int]error) {
	at := 0
	u, refused := NewUnit(m.description(t)), map[int]error{}
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%v in case\n%s", r, cases[at].Text()))
		}
	}()
	var symbols []string
	for k, c := range cases {
		at = k
		symbol := fmt.Sprintf("k%d", k)
		if _, err := u.AddWithPacks(symbol, symbol, c.Schedule); err != nil {
			refused[k] = err
			symbol = ""
		}
		symbols = append(symbols, symbol)
	}
	return kerneltest.Source(m.model+u.Source(), symbols), refused
}

// execute compiles the cases and runs those that can be lowered. The error names the failure and its case (-1: all).
func (m mode) execute(t testing.TB, cases []kerneltest.Case) (outputs [][]*array.Array, refused map[int]error, at int, err error) {
	text, refused := m.source(t, cases)
	program, err := m.compile(t, text)
	if err != nil {
		return nil, refused, -1, err
	}
	command := []string{program}
	if m.emulator != "" {
		command = append(strings.Fields(m.emulator), program)
	}
	outputs, at, err = kerneltest.Run(command, cases, refused)
	return outputs, refused, at, err
}

// runsHere reports whether this machine, or an emulator on it, has the target's instructions.
func runsHere(t testing.TB, d *target.Target) bool {
	native, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	return d.CPU.Arch != native.CPU.Arch || d.RunsOn(native) == nil
}

func (m mode) compile(t testing.TB, text string) (program string, err error) {
	d := m.description(t)
	if !runsHere(t, d) {
		// Decisions of the code generator for 64-byte vectors are still tested; the compiler splits each into halves.
		d = mode{target: "x86-64-v3"}.description(t)
	}
	flags := d.CPU.ClangFlags()
	if m.compiler == "gcc" {
		flags = d.CPU.GCCFlags()
	}
	flags = append(flags, "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-w")
	return toolchaintest.Program(t, m.compiler, append(flags, m.flags...), text)
}
