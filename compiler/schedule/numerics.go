package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Numerics bounds the accuracy that algorithms may trade for speed. Each level includes those before it. All levels
// allow reordered sums and fused multiply-adds.
type Numerics uint8

// The levels of numerics.
const (
	// Strict allows direct sums only: rounding errors are those of summation in some order.
	Strict Numerics = iota
	// Default also allows algorithms whose errors are larger by a known factor, see Schedule.ErrorGrowth: Winograd,
	// Strassen, and matrix products in TF32 pieces.
	Default
	// Fast also allows larger losses: products of elements rounded to TF32, bfloat16 or 8 bits, whether by
	// schedules or, on devices that benefit, in memory (backend.Backend.Storage).
	Fast
)

var numericsNames = []string{"strict", "default", "fast"}

// String returns the level's name.
func (n Numerics) String() string {
	if int(n) < len(numericsNames) {
		return numericsNames[n]
	}
	return fmt.Sprintf("numerics %d", n)
}

// ParseNumerics returns the level of the given name; the empty string stands for Default.
func ParseNumerics(name string) (Numerics, error) {
	if name == "" {
		return Default, nil
	}
	k := slices.Index(numericsNames, name)
	if k < 0 {
		return 0, fmt.Errorf("numerics %q: want %s", name, strings.Join(numericsNames, ", "))
	}
	return Numerics(k), nil
}

// algorithm describes an algorithm that replaces a direct sum.
type algorithm struct {
	name string
	// level is the lowest level that allows it.
	level Numerics
	// growth is the approximate ratio of its rounding errors to those of the direct sum.
	growth float64
	// multiplications is the ratio of its multiplications to those of the direct sum.
	multiplications float64
}

// Numerics returns the lowest level that allows the schedule.
func (s *Schedule) Numerics() Numerics {
	level := Strict
	for _, a := range s.algorithms {
		level = max(level, a.level)
	}
	return level
}

// ErrorGrowth returns an approximate upper bound for the ratio of rounding errors to those of direct sums; 1 if all
// sums are direct.
func (s *Schedule) ErrorGrowth() float64 {
	growth := 1.0
	for _, a := range s.algorithms {
		growth *= a.growth
	}
	return growth
}

// Multiplications returns a lower bound for the ratio of multiplications to those of direct sums; 1 if all sums are
// direct. It ignores sums that algorithms add.
func (s *Schedule) Multiplications() float64 {
	share := 1.0
	for _, a := range s.algorithms {
		share *= a.multiplications
	}
	return share
}

// Algorithms names the algorithms other than direct sums, in the order of their primitives: "F(4x4,3x3)",
// "F(2x2,3x3)/2" for a stride of 2, "Strassen", "Strassen+sums" if the kernel computes the sums of the constant, or
// the format that instructions round to, such as "TF32".
func (s *Schedule) Algorithms() []string {
	var names []string
	for _, a := range s.algorithms {
		names = append(names, a.name)
	}
	return names
}
