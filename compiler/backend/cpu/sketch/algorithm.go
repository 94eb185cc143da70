package sketch

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// The values of the knob space.AlgorithmKnob other than space.Direct, which say how the heaviest reduction is
// computed: by Winograd's F(m x m, kernel), whose value is m, by F(4x2, kernel), which reads fewer weights than the
// largest and multiplies less than the smallest, or by Strassen's algorithm, whose value is the number of its
// products, or ten times that where the sums of the constant are computed by the kernel.
const (
	smallest = 2
	largest  = 4
	tall     = 42
	seven    = 7
	sevenNow = 70
)

// outputTile is how many rows and columns of outputs an algorithm of Winograd computes at a time.
func outputTile(alg int64) (rows, columns int64) {
	if alg == tall {
		return largest, smallest
	}
	return alg, alg
}

// algorithm is a sketch that computes a reduction otherwise than as its direct sum.
type algorithm interface {
	sketch
	// algorithms are the values of the knob that choose this sketch, ascending.
	algorithms() []int64
	// seeds are points that are known to be good with a register file.
	seeds(registers int) []string
}

// otherAlgorithm is what may compute the reduction acc in place of the direct sum x; nil when nothing may. The
// transforms of Winograd's algorithm are computed for one output alone.
func otherAlgorithm(s *schedule.Schedule, acc *schedule.Stage, t *target.Target, x *tile, alone bool) algorithm {
	if w := newWinograd(s, acc, t); w != nil && alone {
		return w
	}
	if p := newStrassen(s, acc, t, x); p != nil {
		return p
	}
	return nil
}
