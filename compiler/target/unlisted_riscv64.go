package target

import (
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// unlisted returns the minimum lengths of vector registers, which the kernel does not report.
func unlisted() []string {
	if !vectorsUsable(cpu.RISCV64.HasV, hwcap(), vectorControl()) {
		return nil
	}
	return vectorFlags(int(registerBytes()))
}

// registerBytes returns the length of a vector register, or 0 if the V extension is the draft 0.7.1, whose
// instructions differ. Call it only if vectorsUsable reports that vector instructions can be executed.
func registerBytes() uintptr

// hwcap returns the capabilities in the auxiliary vector; 0 if none exist.
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

// vectorControl returns the kernel's vector permission of this process.
func vectorControl() int {
	control, err := unix.PrctlRetInt(unix.PR_RISCV_V_GET_CONTROL, 0, 0, 0, 0)
	if err != nil {
		return vectorsUnsaid
	}
	return control
}
