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

// pairs is a product of elements in bfloat16, of which two terms lie side by side in either operand.
const (
	pairs = `input t0 bf16[2,2,2]
constant t1 bf16[2,8,2]
sum t2 f32[2,8] over 2,2 = (mul (cast f32 [t0 i0 r0 r1]) (cast f32 [t1 r0 i1 r1]))
output t2
`
	twos = "reorder 0 0 2 3 1\nvectorize 0 1\ndot 0 3\n"
)

func TestStepsOfSumsOfPairsAreOneInstruction(t *testing.T) {
	f := promote.Run(irtest.Unrolled(t, pairs, twos))
	irtest.Golden(t, "pairs_before", f)
	irtest.Golden(t, "pairs_after", dot.Run(f, func(x dot.Types, terms int64) bool {
		return x == dot.Types{A: array.BFloat16, B: array.BFloat16} && terms == 2
	}))
}

func TestStepsOfIntegerSumsAreOneInstruction(t *testing.T) {
	f := promote.Run(irtest.Unrolled(t, integers, fours))
	irtest.Golden(t, "before", f)
	unsignedBySigned := func(x dot.Types, terms int64) bool {
		return x == dot.Types{A: array.Uint8, B: array.Int8} && terms == 4
	}
	irtest.Golden(t, "after", dot.Run(f, unsignedBySigned))
	irtest.Golden(t, "without", dot.Run(f, func(dot.Types, int64) bool { return false }))
}

// TestLanesOfGroupsPickTheirTerms: channels of a group read the same terms, those of several groups their own.
func TestLanesOfGroupsPickTheirTerms(t *testing.T) {
	const groups = `input t0 u8[2,16]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 i0 (add (add (mul (floordiv i1 4) 8) (mul r0 4)) r1)]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	f := promote.Run(irtest.Unrolled(t, groups, fours))
	irtest.Golden(t, "groups", dot.Run(f, func(dot.Types, int64) bool { return true }))
}

// TestTermsFarApartTakeTurns: each lane's terms are in vectors of their own, of which a register has the first
// elements, then the second ones, and so on.
func TestTermsFarApartTakeTurns(t *testing.T) {
	const window = `input t0 u8[2,7,8]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 r0 (add i0 r1) i1]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	f := promote.Run(irtest.Unrolled(t, window, fours))
	irtest.Golden(t, "turns", dot.Run(f, func(dot.Types, int64) bool { return true }))
}
