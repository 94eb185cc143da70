package target

import "golang.org/x/sys/cpu"

// unlisted are what the kernel tells a program of 32 bits when it begins. Where the kernel has 64 bits, /proc/cpuinfo
// may list the names of those instead.
func unlisted() (flags []string) {
	for flag, has := range map[string]bool{"neon": cpu.ARM.HasNEON, "vfpv4": cpu.ARM.HasVFPv4, "idiva": cpu.ARM.HasIDIVA} {
		if has {
			flags = append(flags, flag)
		}
	}
	return flags
}
