package target

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// presets holds the processors known by name, for machines that are not available. Caches default to those of small
// common models.
var presets = map[string]CPU{
	"x86-64-v2": {Arch: X86, Features: levelFeatures(v2)},
	"x86-64-v3": {Arch: X86, Features: levelFeatures(v2, v3)},
	"x86-64-v4": {Arch: X86, Features: levelFeatures(v2, v3, v4)},
	"arm64":     {Arch: ARM, Features: []string{"neon"}},
	"arm32":     {Arch: ARM32, Features: []string{"neon", "vfpv4"}},
	"riscv64":   {Arch: RISCV, Features: []string{"v"}},

	// Boards: the processors of a Raspberry Pi 2, of a Raspberry Pi 3 with a 32-bit system, of a VisionFive 2,
	// which has no vectors, and of a BananaPi F3.
	"cortex-a7":     {Arch: ARM32, Features: []string{"idiv", "neon", "vfpv4"}},
	"cortex-a53-32": {Arch: ARM32, Features: []string{"idiv", "neon", "vfpv4"}},
	"sifive-u74":    {Arch: RISCV, Features: []string{"zba", "zbb"}, L2Bytes: 2 << 20},
	"spacemit-x60":  {Arch: RISCV, Features: []string{"v", "zba", "zbb", "zbs", "zfh", "zvfh", "zvl256b"}},

	// Servers with SVE: the processor of AWS Graviton3, and Fujitsu's.
	"neoverse-v1": {Arch: ARM, Features: []string{"bf16", "dotprod", "fp16", "i8mm", "lse", "neon", "sve", "sve256"},
		L1DataBytes: 64 << 10, L2Bytes: 1 << 20},
	"a64fx": {Arch: ARM, Features: []string{"fp16", "lse", "neon", "sve", "sve512"}, L1DataBytes: 64 << 10, L2Bytes: 8 << 20,
		CacheLineBytes: 256},

	"sapphire-rapids": {Arch: X86, Features: levelFeatures(v2, v3, v4, sapphireRapids), L1DataBytes: 48 << 10, L2Bytes: 2 << 20},
	"granite-rapids": {Arch: X86, Features: levelFeatures(v2, v3, v4, sapphireRapids, []string{"amx-fp16"}),
		L1DataBytes: 48 << 10, L2Bytes: 2 << 20},
}

// The microarchitecture levels of the x86-64 psABI.
var (
	v2 = []string{"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}
	v3 = []string{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
	v4 = []string{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
)

// sapphireRapids lists the extensions of servers with tiles beyond the last level.
var sapphireRapids = []string{"avxvnni", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bf16", "avx512fp16",
	"amx-tile", "amx-int8", "amx-bf16"}

func levelFeatures(levels ...[]string) []string {
	return slices.Sorted(slices.Values(slices.Concat(levels...)))
}

// Here is the target name of this machine.
const Here = "native"

// Names returns the target names that Parse accepts.
func Names() []string {
	return append([]string{Here}, slices.Sorted(maps.Keys(presets))...)
}

// Parse returns a CPU target by name: "native" for this machine, or a preset such as "x86-64-v3" or "arm64". Zero
// threads means one per physical core (one, for presets).
func Parse(name string, threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	if name == Here {
		return Native(threads)
	}
	if p, ok := presets[name]; ok {
		return preset(p, threads), nil
	}
	return nil, fmt.Errorf("target: unknown target %q: want one of %s", name, strings.Join(Names(), ", "))
}

// hosts maps architectures to presets for the hosts of GPUs. Machines built for GPUs support these.
var hosts = map[string]string{X86: "x86-64-v3", ARM: "arm64", ARM32: "arm32", RISCV: "riscv64"}

// Host returns the host of a GPU, with this machine's architecture. Kernels run on the GPU, whose records are valid
// beside any processor.
func Host(threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	name, ok := goArches[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("target: this machine's architecture %s is not supported; name another target", runtime.GOARCH)
	}
	return preset(presets[hosts[name]], threads), nil
}

func checkThreads(threads int) error {
	if threads < 0 || threads > maxThreads {
		return fmt.Errorf("target: %d threads; use a number between 1 and %d, or 0 for the physical cores", threads, maxThreads)
	}
	return nil
}

// IsFile reports whether a target's name is the path of a file.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.ContainsRune(name, os.PathSeparator)
}

// generic is the model of processors described by architecture and features alone.
const generic = "generic"

func preset(c CPU, threads int) *Target {
	c.Features = slices.Clone(c.Features)
	c.Model = generic
	c.Threads = max(threads, 1)
	c.Cores = c.Threads
	c.L1DataBytes, c.L2Bytes = cmp.Or(c.L1DataBytes, defaultL1), cmp.Or(c.L2Bytes, defaultL2)
	c.CacheLineBytes = cmp.Or(c.CacheLineBytes, defaultLine)
	c.setVectors()
	return &Target{Backend: Default, CPU: &c}
}

// Read reads a target of any backend from a JSON file in the format of Encode. Zero threads keeps the file's
// number.
func Read(path string, threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("target: reading the target's description: %w", err)
	}
	t, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	if threads > 0 {
		t = t.WithThreads(threads)
	}
	return t, nil
}
