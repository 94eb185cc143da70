package pass

import "github.com/tilth-dev/tilth/compiler/ir"

// Comparisons gives the external tests the counter of conditions.
var Comparisons = comparisons

// Matches returns the reason why a block, in loops that may remain, does not compute an instruction; nil if it does.
func Matches(b ir.Block, i *ir.Instruction) error {
	_, err := tensorize(b, i, nil, nil)
	return err
}
