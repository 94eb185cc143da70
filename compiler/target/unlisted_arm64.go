package target

import "golang.org/x/sys/unix"

// unlisted returns flags from the auxiliary vector, since /proc/cpuinfo may be that of another machine under an
// emulator, and the SVE register length, which is per process: an administrator may limit it below the hardware's.
func unlisted() []string {
	const atHWCAP, atHWCAP2 = 16, 26
	vector, err := unix.Auxv()
	if err != nil {
		return nil
	}
	var hwcap, hwcap2 uint64
	for _, pair := range vector {
		switch pair[0] {
		case atHWCAP:
			hwcap = uint64(pair[1])
		case atHWCAP2:
			hwcap2 = uint64(pair[1])
		}
	}
	return hwcapFlags(hwcap, hwcap2, func() int { return int(registerBytes()) })
}

// registerBytes returns the length of an SVE register. Call it only if the kernel reports SVE.
func registerBytes() uintptr
