package target

import (
	"fmt"
	"strings"
)

// Triple returns the compiler's name for the processor's architecture, e.g. "aarch64-linux-gnu".
func (c *CPU) Triple() string { return arches[c.Arch].triple }

// ClangFlags returns the flags that select the processor's instruction set for clang. They name every feature and
// never use -march=native, so that every builder generates the same code.
func (c *CPU) ClangFlags() []string {
	return append([]string{"--target=" + c.Triple()}, c.machineFlags()...)
}

// GCCFlags returns the flags that select the processor's instruction set for its architecture's gcc.
func (c *CPU) GCCFlags() []string { return c.machineFlags() }

func (c *CPU) machineFlags() []string {
	march := arches[c.Arch].march
	switch c.Arch {
	case X86:
		flags := []string{"-march=" + march, "-mtune=generic"}
		for _, f := range c.Features {
			flags = append(flags, "-m"+f)
		}
		if c.VectorBytes == 64 {
			flags = append(flags, "-mprefer-vector-width=512")
		}
		return flags
	case ARM:
		return c.armFlags(march)
	case ARM32:
		return append([]string{"-march=" + march}, c.floatingPoint()...)
	case ARMV7EM, ARMV8M:
		return c.microcontroller()
	case RISCV32:
		return []string{"-march=" + c.extended(march), "-mabi=ilp32f"}
	case RISCV:
		return []string{"-march=" + c.extended(march), "-mabi=lp64d"}
	}
	return []string{"-march=" + march}
}

// armFlags returns the flags of an arm64 processor. Neon is part of the baseline. The SVE register length is not an
// extension; with it, clang uses these registers for vectors of that length.
func (c *CPU) armFlags(march string) []string {
	for _, f := range c.Features {
		if f != "neon" && sveLengths[f] == 0 {
			march += "+" + f
		}
	}
	flags := []string{"-march=" + march}
	if bytes := c.sveBytes(); bytes > 0 {
		flags = append(flags, fmt.Sprintf("-msve-vector-bits=%d", 8*bytes))
	}
	return flags
}

// floatingPoint returns the floating-point flags of an arm32 processor. VFPv4 implies fused multiply-adds.
func (c *CPU) floatingPoint() []string {
	unit := "vfpv3-d16"
	switch {
	case c.Has("neon") && c.Has("vfpv4"):
		unit = "neon-vfpv4"
	case c.Has("neon"):
		unit = "neon"
	case c.Has("vfpv4"):
		unit = "vfpv4-d16"
	}
	return []string{"-mfpu=" + unit, "-mfloat-abi=hard"}
}

// extended returns a RISC-V architecture string with the processor's extensions: letters first, then names.
func (c *CPU) extended(march string) string {
	var names []string
	for _, f := range c.Features {
		if len(f) == 1 {
			march += f
		} else {
			names = append(names, f)
		}
	}
	return strings.Join(append([]string{march}, names...), "_")
}
