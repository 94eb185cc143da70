package pass

import "github.com/tilth-dev/tilth/compiler/ir"

// Comparisons gives the external tests the counter of conditions.
var Comparisons = comparisons

// Tensorized returns the operands of the first match of a block with an instruction. Those that are to be moved are
// the tensors alone.
func Tensorized(b ir.Block, i *ir.Instruction, in ...*ir.Buffer) (args []ir.Arg, err error) {
	allocated := ir.Allocated{}
	for _, x := range in {
		allocated[x.Tensor] = x
	}
	found, err := tensorize(b, i, allocated, nil)
	if err != nil {
		return nil, err
	}
	for k := range found[0].operands {
		args = append(args, found[0].operands[k].arg())
	}
	return args, nil
}
