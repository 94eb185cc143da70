package target

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Named is the name of a target, with a line that describes it and other names that it is known by.
type Named struct {
	Name        string   `json:"target"`
	Description string   `json:"description"`
	Aliases     []string `json:"aliases,omitempty"`
}

// preset is a processor known by name.
type preset struct {
	Named
	cpu CPU
}

// presets holds the processors known by name, for machines that are not available. Caches default to those of small
// common models.
var presets = []preset{
	{Named{"x86-64-v2", "any x86-64 processor since 2009: SSE4.2", []string{"x86-64", "amd64", "x64", "sse4"}},
		CPU{Arch: X86, Features: levelFeatures(v2)}},
	{Named{"x86-64-v3", "Intel since Haswell, AMD since Zen: AVX2 and FMA", []string{"avx2", "haswell", "zen", "zen2", "zen3"}},
		CPU{Arch: X86, Features: levelFeatures(v2, v3)}},
	{Named{"x86-64-v4", "Intel's servers since Skylake, AMD since Zen 4: AVX-512", []string{"avx512", "skylake-avx512", "zen4", "zen5"}},
		CPU{Arch: X86, Features: levelFeatures(v2, v3, v4)}},
	{Named{"sapphire-rapids", "Intel's fourth Xeon Scalable: AVX-512 and AMX", []string{"amx"}},
		CPU{Arch: X86, Features: levelFeatures(v2, v3, v4, sapphireRapids), L1DataBytes: 48 << 10, L2Bytes: 2 << 20}},
	{Named{"granite-rapids", "Intel's Xeon 6: AVX-512, and AMX with float16", nil},
		CPU{Arch: X86, Features: levelFeatures(v2, v3, v4, sapphireRapids, []string{"amx-fp16"}), L1DataBytes: 48 << 10, L2Bytes: 2 << 20}},

	{Named{"arm64", "any 64-bit Arm processor: Neon",
		[]string{"aarch64", "armv8", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73", "raspberry-pi-3", "raspberry-pi-4"}},
		CPU{Arch: ARM, Features: []string{"neon"}}},
	{Named{"cortex-a76", "Armv8.2: Neon with dot products and float16",
		[]string{"armv8.2", "cortex-a55", "cortex-a75", "cortex-a77", "cortex-a78", "graviton2", "neoverse-n1", "raspberry-pi-5"}},
		CPU{Arch: ARM, Features: []string{"dotprod", "fp16", "lse", "neon"}}},
	{Named{"neoverse-v1", "AWS Graviton3: SVE of 256 bits", []string{"graviton3"}},
		CPU{Arch: ARM, Features: []string{"bf16", "dotprod", "fp16", "i8mm", "lse", "neon", "sve", "sve256"}, L1DataBytes: 64 << 10, L2Bytes: 1 << 20}},
	{Named{"a64fx", "Fujitsu A64FX: SVE of 512 bits", nil},
		CPU{Arch: ARM, Features: []string{"fp16", "lse", "neon", "sve", "sve512"}, L1DataBytes: 64 << 10, L2Bytes: 8 << 20, CacheLineBytes: 256}},
	{Named{"arm32", "32-bit Arm: Neon and VFPv4", []string{"arm", "armhf", "armv7", "armv7l"}},
		CPU{Arch: ARM32, Features: []string{"neon", "vfpv4"}}},
	{Named{"cortex-a7", "32-bit Arm with integer division", []string{"cortex-a15", "raspberry-pi-2"}},
		CPU{Arch: ARM32, Features: []string{"idiv", "neon", "vfpv4"}}},
	{Named{"cortex-a53-32", "64-bit Arm processor with a 32-bit system", []string{"armv8l", "raspberry-pi-3-32"}},
		CPU{Arch: ARM32, Features: []string{"idiv", "neon", "vfpv4"}}},

	{Named{"riscv64", "64-bit RISC-V with vectors of 128 bits or more", []string{"rv64gcv"}},
		CPU{Arch: RISCV, Features: []string{"v"}}},
	{Named{"sifive-u74", "RISC-V without vectors", []string{"visionfive-2"}},
		CPU{Arch: RISCV, Features: []string{"zba", "zbb"}, L2Bytes: 2 << 20}},
	{Named{"spacemit-x60", "RISC-V with vectors of 256 bits", []string{"banana-pi-f3", "bananapi-f3"}},
		CPU{Arch: RISCV, Features: []string{"v", "zba", "zbb", "zbs", "zfh", "zvfh", "zvl256b"}}},
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

// Presets describes the targets that Parse accepts.
func Presets() []Named {
	list := []Named{{Name: Here, Description: "this machine"}}
	for _, p := range presets {
		list = append(list, p.Named)
	}
	return list
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
	for _, p := range presets {
		if p.Name == name {
			return p.target(threads), nil
		}
	}
	return nil, fmt.Errorf("target: unknown target %q", name)
}

// hosts maps architectures to presets for the hosts of GPUs. Machines built for GPUs support these.
var hosts = map[string]string{X86: "x86-64-v3", ARM: "arm64", ARM32: "arm32", RISCV: "riscv64"}

// Host returns the host of a GPU, with this machine's architecture. Kernels run on the GPU, whose records are valid
// beside any processor.
func Host(threads int) (*Target, error) {
	name, ok := goArches[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("target: this machine's architecture %s is not supported; name another target", runtime.GOARCH)
	}
	return Parse(hosts[name], threads)
}

func checkThreads(threads int) error {
	if threads < 0 || threads > MaxThreads {
		return fmt.Errorf("target: %d threads; use a number between 1 and %d, or 0 for the physical cores", threads, MaxThreads)
	}
	return nil
}

// IsFile reports whether a target's name is the path of a file.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.ContainsRune(name, os.PathSeparator)
}

// generic is the model of processors described by architecture and features alone.
const generic = "generic"

func (p preset) target(threads int) *Target {
	c := p.cpu
	c.Features = slices.Clone(c.Features)
	c.Model = generic
	c.Threads = max(threads, 1)
	c.Cores = c.Threads
	c.L1DataBytes, c.L2Bytes = cmp.Or(c.L1DataBytes, defaultL1), cmp.Or(c.L2Bytes, defaultL2)
	c.CacheLineBytes = cmp.Or(c.CacheLineBytes, defaultLine)
	c.setVectors()
	return &Target{Backend: Default, CPU: &c}
}

// Read reads a target of any backend from a JSON file in the format of Encode. Zero threads keeps the file's number.
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
