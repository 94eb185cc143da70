package target

// Linux interfaces for RISC-V vectors: one bit per letter of the instruction set, and the permission of the
// process, by prctl.
const (
	hwcapV        = 1 << ('v' - 'a')
	vectorsMask   = 3 // PR_RISCV_V_VSTATE_CTRL_CUR_MASK
	vectorsOff    = 1 // PR_RISCV_V_VSTATE_CTRL_OFF
	vectorsUnsaid = 0 // kernels before 6.5, without this call
)

// vectorsUsable reports whether vector instructions execute rather than trap. The kernel must save the registers,
// as reported by riscv_hwprobe or the auxiliary vector, and may deny them to the process. An entry in /proc/cpuinfo
// does not suffice.
func vectorsUsable(probed bool, hwcap uint64, control int) bool {
	return (probed || hwcap&hwcapV != 0) && control&vectorsMask != vectorsOff
}
