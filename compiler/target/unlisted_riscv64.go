package target

import (
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// unlisted are the lengths that vector registers have at least, of which no kernel tells.
func unlisted() []string {
	if info, err := readCPUInfo(os.DirFS("/")); err == nil && info.hasVectors() || cpu.RISCV64.HasV {
		return vectorFlags(int(registerBytes()))
	}
	return nil
}

// registerBytes is the length of a vector register; 0 where the V extension is the draft 0.7.1, whose instructions are
// others. Only for processors of which the kernel says that they have one or the other.
func registerBytes() uintptr

// hasVectors reports whether a RISC-V processor has the V extension or a draft of it.
func (c cpuinfo) hasVectors() bool {
	letters, _, _ := strings.Cut(strings.TrimPrefix(c["isa"], "rv64"), "_")
	return strings.Contains(letters, "v")
}
