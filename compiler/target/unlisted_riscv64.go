package target

import (
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// unlisted are the lengths that vector registers have at least, of which no kernel tells.
func unlisted() []string {
	if !vectorsUsable(cpu.RISCV64.HasV, hwcap(), vectorControl()) {
		return nil
	}
	return vectorFlags(int(registerBytes()))
}

// registerBytes is the length of a vector register; 0 where the V extension is the draft 0.7.1, whose instructions are
// others. Only where vectorsUsable says that one or the other may be executed.
func registerBytes() uintptr

// hwcap has the capabilities that the kernel hands a program; 0 where it hands none.
func hwcap() uint64 {
	const atHWCAP = 16
	vector, err := unix.Auxv()
	if err != nil {
		return 0
	}
	for _, pair := range vector {
		if pair[0] == atHWCAP {
			return uint64(pair[1])
		}
	}
	return 0
}

// vectorControl is what the kernel lets this process do with vectors.
func vectorControl() int {
	control, err := unix.PrctlRetInt(unix.PR_RISCV_V_GET_CONTROL, 0, 0, 0, 0)
	if err != nil {
		return vectorsUnsaid
	}
	return control
}
