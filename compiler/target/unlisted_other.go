//go:build !amd64 && !arm && !arm64 && !riscv64

package target

// unlisted are flags of /proc/cpuinfo that some kernels leave out.
func unlisted() []string { return nil }
