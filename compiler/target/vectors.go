package target

// What Linux says of the vectors of a RISC-V processor: a bit for each letter of the instruction set, and what the
// process may use of them, by prctl.
const (
	hwcapV        = 1 << ('v' - 'a')
	vectorsMask   = 3 // PR_RISCV_V_VSTATE_CTRL_CUR_MASK
	vectorsOff    = 1 // PR_RISCV_V_VSTATE_CTRL_OFF
	vectorsUnsaid = 0 // kernels before 6.5, which have no such call
)

// vectorsUsable reports whether a vector instruction is executed rather than trapped. The kernel has to keep the
// registers, which it says by riscv_hwprobe or in the capabilities that it hands a program, and may deny them to the
// process. That the processor has them, as /proc/cpuinfo lists, is not enough.
func vectorsUsable(probed bool, hwcap uint64, control int) bool {
	return (probed || hwcap&hwcapV != 0) && control&vectorsMask != vectorsOff
}
