//go:build !amd64 && !arm && !riscv64

package target

// unlisted are flags of /proc/cpuinfo that some kernels leave out.
func unlisted() []string { return nil }
