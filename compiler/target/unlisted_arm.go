package target

import "golang.org/x/sys/cpu"

// unlisted returns flags from the auxiliary vector of a 32-bit program. On a 64-bit kernel, /proc/cpuinfo may list
// the 64-bit names instead.
func unlisted() (flags []string) {
	for flag, has := range map[string]bool{"neon": cpu.ARM.HasNEON, "vfpv4": cpu.ARM.HasVFPv4, "idiva": cpu.ARM.HasIDIVA} {
		if has {
			flags = append(flags, flag)
		}
	}
	return flags
}
