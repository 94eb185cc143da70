package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Numerics is how much accuracy algorithms may trade for speed. Each level allows what those before it do. Under all
// of them sums may be reordered and multiply-adds fused.
type Numerics uint8

// The levels of numerics.
const (
	// Strict allows direct sums only: the rounding errors are those of adding the terms up in some order.
	Strict Numerics = iota
	// Default also allows algorithms whose errors are larger by a known factor, see Schedule.ErrorGrowth: Winograd and
	// Strassen, and products of matrices in pieces of TF32.
	Default
	// Fast also allows whatever loses more: products of elements that are rounded to TF32, bfloat16 or 8 bits, whether
	// by schedules or, on devices that gain by it, in memory (backend.Backend.Storage).
	Fast
)

var numericsNames = []string{"strict", "default", "fast"}

// String is the level's name.
func (n Numerics) String() string {
	if int(n) < len(numericsNames) {
		return numericsNames[n]
	}
	return fmt.Sprintf("numerics %d", n)
}

// ParseNumerics reads a level's name; empty is Default.
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

// algorithm is one that the schedule uses in place of a direct sum.
type algorithm struct {
	name string
	// level is the least that allows it.
	level Numerics
	// growth is about how much larger its rounding errors are than those of the direct sum.
	growth float64
	// multiplications are its multiplications as a share of the direct sum's.
	multiplications float64
}

// Numerics is the least level that allows the schedule.
func (s *Schedule) Numerics() Numerics {
	level := Strict
	for _, a := range s.algorithms {
		level = max(level, a.level)
	}
	return level
}

// ErrorGrowth is about how much larger rounding errors are than those of direct sums, at most; 1 where all sums are
// direct.
func (s *Schedule) ErrorGrowth() float64 {
	growth := 1.0
	for _, a := range s.algorithms {
		growth *= a.growth
	}
	return growth
}

// Multiplications are at least those of the schedule, as a share of those of direct sums: 1 where all sums are direct.
// Sums that algorithms add are not counted.
func (s *Schedule) Multiplications() float64 {
	share := 1.0
	for _, a := range s.algorithms {
		share *= a.multiplications
	}
	return share
}

// Algorithms names the algorithms that the schedule uses beside direct sums, in the order of their primitives:
// "F(4x4,3x3)", "F(2x2,3x3)/2" where the stride is 2, "Strassen", or "Strassen+sums" where the kernel computes the
// sums of the constant, too, "TF32" or another format that instructions round to.
func (s *Schedule) Algorithms() []string {
	var names []string
	for _, a := range s.algorithms {
		names = append(names, a.name)
	}
	return names
}
