package machine

import "github.com/tilth-dev/tilth/compiler/target"

// HasDots reports whether an arm64 target adds the products of four bytes of one sign to each lane: SVE does by
// itself.
func HasDots(t *target.Target) bool {
	return t.CPU.Arch == target.ARM && (t.CPU.Has("dotprod") || t.CPU.Has("sve") && t.CPU.VectorBytes > NeonBytes)
}

// NeonBytes is the length of Neon's registers.
const NeonBytes = 16
