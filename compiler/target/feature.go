package target

import (
	"slices"
)

// feature is an instruction set extension.
type feature struct {
	// name is the compiler's name: -m<name> on x86, +<name> on arm64, a part of -march on RISC-V.
	name string
	// flag is the name in /proc/cpuinfo; empty if it is the same.
	flag string
}

type arch struct {
	// triple is the compiler's name for the architecture on Linux, or without an operating system.
	triple string
	// gcc is the prefix of gcc's program names, if it differs from the triple.
	gcc string
	// march is the baseline to which features are added.
	march string
	// bare is set if programs run without an operating system.
	bare     bool
	features []feature
}

var arches = map[string]arch{
	X86: {triple: "x86_64-linux-gnu", march: "x86-64", features: []feature{
		{name: "sse3", flag: "pni"}, {name: "ssse3"}, {name: "sse4.1", flag: "sse4_1"}, {name: "sse4.2", flag: "sse4_2"}, {name: "popcnt"},
		{name: "avx"}, {name: "f16c"}, {name: "avx2"}, {name: "fma"}, {name: "bmi", flag: "bmi1"}, {name: "bmi2"}, {name: "lzcnt", flag: "abm"}, {name: "movbe"},
		{name: "avxvnni", flag: "avx_vnni"},
		{name: "avx512f"}, {name: "avx512cd"}, {name: "avx512bw"}, {name: "avx512dq"}, {name: "avx512vl"}, {name: "avx512ifma"},
		{name: "avx512vbmi"}, {name: "avx512vbmi2", flag: "avx512_vbmi2"}, {name: "avx512vnni", flag: "avx512_vnni"},
		{name: "avx512bf16", flag: "avx512_bf16"}, {name: "avx512fp16", flag: "avx512_fp16"},
		{name: "amx-tile", flag: "amx_tile"}, {name: "amx-int8", flag: "amx_int8"}, {name: "amx-bf16", flag: "amx_bf16"},
		{name: "amx-fp16", flag: "amx_fp16"},
	}},
	ARM: {triple: "aarch64-linux-gnu", march: "armv8-a", features: []feature{
		{name: "neon", flag: "asimd"}, {name: "lse", flag: "atomics"}, {name: "fp16", flag: "asimdhp"}, {name: "dotprod", flag: "asimddp"},
		{name: "bf16"}, {name: "i8mm"}, {name: "sve"}, {name: "sve2"},
		{name: "sve256"}, {name: "sve512"}, {name: "sve1024"},
	}},
	ARM32: {triple: "arm-linux-gnueabihf", march: "armv7-a", features: []feature{{name: "neon"}, {name: "vfpv4"}, {name: "idiv", flag: "idiva"}}},
	RISCV: {triple: "riscv64-linux-gnu", march: "rv64gc", features: []feature{
		{name: "v"}, {name: "zvl256b"}, {name: "zvl512b"}, {name: "zvl1024b"}, {name: "zba"}, {name: "zbb"}, {name: "zbs"}, {name: "zfh"}, {name: "zvfh"},
	}},
	ARMV7EM: {triple: "thumbv7em-none-eabihf", gcc: "arm-none-eabi", march: "armv7e-m", bare: true, features: []feature{{name: "fp64"}}},
	ARMV8M:  {triple: "thumbv8.1m.main-none-eabihf", gcc: "arm-none-eabi", march: "armv8.1-m.main", bare: true, features: []feature{{name: "mve"}}},
	RISCV32: {triple: "riscv32-unknown-elf", gcc: "riscv64-unknown-elf", march: "rv32imafc", bare: true, features: []feature{{name: "zba"}, {name: "zbb"}}},
}

// FeatureNames returns the instruction set extensions of an architecture that targets distinguish, by compiler names.
func FeatureNames(of string) []string { return arches[of].featureNames() }

func (a arch) featureNames() []string {
	names := make([]string, len(a.features))
	for k, f := range a.features {
		names[k] = f.name
	}
	return names
}

// fromFlags selects the known features among the processor's flags.
func (a arch) fromFlags(flags []string) []string {
	names := []string{}
	for _, f := range a.features {
		if slices.Contains(flags, f.name) && f.flag == "" || f.flag != "" && slices.Contains(flags, f.flag) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// setVectors derives the vector register file from the features.
func (c *CPU) setVectors() {
	switch {
	case c.Has("avx512f") && c.Has("avx512vl"):
		c.VectorBytes, c.VectorRegisters = 64, 32
	case c.Has("avx2"):
		c.VectorBytes, c.VectorRegisters = 32, 16
	case c.Arch == X86, c.Arch == ARM32:
		c.VectorBytes, c.VectorRegisters = 16, 16
	case c.Has("mve"):
		c.VectorBytes, c.VectorRegisters = 16, 8
	case c.isBare():
		// There are no vectors: the compiler splits pairs into scalars, for 16 of which it has registers. A
		// perceptron of 235 thousand multiply-adds takes 526 thousand instructions of a Cortex-M7, and 522 with
		// vectors of 16 bytes.
		c.VectorBytes, c.VectorRegisters = 8, 16
	case c.Has("v"):
		c.VectorBytes, c.VectorRegisters = c.minLength(), 32
	case c.sveBytes() > 0:
		c.VectorBytes, c.VectorRegisters = c.sveBytes(), 32
	default: // Neon, which is as wide as the shortest SVE; elsewhere the compiler splits vectors into scalars
		c.VectorBytes, c.VectorRegisters = 16, 32
	}
}

// lengths lists the features that guarantee a minimum register length of the V extension. The extension alone
// guarantees 16 bytes.
var lengths = []struct {
	feature string
	bytes   int
}{{"zvl1024b", 128}, {"zvl512b", 64}, {"zvl256b", 32}}

// minLength returns the minimum register length of the V extension in bytes.
func (c *CPU) minLength() int {
	for _, l := range lengths {
		if c.Has(l.feature) {
			return l.bytes
		}
	}
	return 16
}

// vectorFlags returns the flags for V registers of the given length; none for 0, which means no such extension.
func vectorFlags(bytes int) (flags []string) {
	if bytes >= 16 {
		flags = append(flags, "v")
	}
	for _, l := range lengths {
		if bytes >= l.bytes {
			flags = append(flags, l.feature)
		}
	}
	return flags
}
