package target

import "github.com/klauspost/cpuid/v2"

// unlisted returns /proc/cpuinfo flags that some kernels omit although cpuid reports the instructions.
func unlisted() []string {
	if cpuid.CPU.Has(cpuid.LZCNT) {
		return []string{"abm"}
	}
	return nil
}
