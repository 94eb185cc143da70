package target

import "golang.org/x/sys/unix"

// unlisted are what the kernel tells a program when it begins, where /proc/cpuinfo may be that of another machine, as
// under an emulator, and the length of SVE's registers, which is a process's own: an administrator may have it shorter
// than the processor has.
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

// registerBytes is the length of an SVE register. Only where the kernel says that there are such registers.
func registerBytes() uintptr
