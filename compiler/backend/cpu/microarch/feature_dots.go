package microarch

import "github.com/tilth-dev/tilth/compiler/target"

// HasDots reports whether an arm64 target has the dot product of four bytes of equal signedness per lane. SVE
// includes it.
func HasDots(t *target.Target) bool {
	return t.CPU.Arch == target.ARM && (t.CPU.Has("dotprod") || t.CPU.Has("sve") && t.CPU.VectorBytes > NeonBytes)
}

// NeonBytes is the size of a Neon register.
const NeonBytes = 16
