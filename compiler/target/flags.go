package target

import "strings"

// Triple is the compiler's name for the target's architecture on Linux, e.g. "aarch64-linux-gnu".
func (t *Target) Triple() string { return arches[t.Arch].triple }

// ClangFlags select the target's instruction set for clang. Every feature is named, never -march=native, so that any
// builder gives the same code.
func (t *Target) ClangFlags() []string {
	return append([]string{"--target=" + t.Triple()}, t.machineFlags()...)
}

// GCCFlags select the target's instruction set for a gcc of the target's architecture.
func (t *Target) GCCFlags() []string { return t.machineFlags() }

func (t *Target) machineFlags() []string {
	march := arches[t.Arch].march
	switch t.Arch {
	case X86:
		flags := []string{"-march=" + march, "-mtune=generic"}
		for _, f := range t.Features {
			flags = append(flags, "-m"+f)
		}
		if t.VectorBytes == 64 {
			flags = append(flags, "-mprefer-vector-width=512")
		}
		return flags
	case ARM:
		for _, f := range t.Features {
			if f != "neon" { // part of the baseline
				march += "+" + f
			}
		}
	case RISCV:
		march += strings.Join(t.Features, "")
		return []string{"-march=" + march, "-mabi=lp64d"}
	}
	return []string{"-march=" + march}
}
