package dot_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/dot"
	"github.com/tilth-dev/tilth/compiler/pass/promote"
)

// integers is a product of bytes, of which four terms lie side by side in either operand.
const (
	integers = `input t0 u8[2,2,4]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 i0 r0 r1]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	fours = "reorder 0 0 2 3 1\nvectorize 0 1\ndot 0 3\n"
)

func TestStepsOfIntegerSumsAreOneInstruction(t *testing.T) {
	f := promote.Run(irtest.Unrolled(t, integers, fours))
	irtest.Golden(t, "before", f)
	unsignedBySigned := func(x dot.Types) int64 {
		if x == (dot.Types{A: array.Uint8, B: array.Int8}) {
			return 4
		}
		return 0
	}
	irtest.Golden(t, "after", dot.Run(f, unsignedBySigned))
	irtest.Golden(t, "without", dot.Run(f, func(dot.Types) int64 { return 0 }))
}
