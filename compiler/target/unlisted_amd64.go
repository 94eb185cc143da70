package target

import "github.com/klauspost/cpuid/v2"

// unlisted are flags of /proc/cpuinfo that some kernels leave out although the processor tells programs of the
// instructions.
func unlisted() []string {
	if cpuid.CPU.Has(cpuid.LZCNT) {
		return []string{"abm"}
	}
	return nil
}
