//go:build !amd64 && !arm && !arm64 && !riscv64

package target

// unlisted returns /proc/cpuinfo flags that some kernels omit.
func unlisted() []string { return nil }
