package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// integers is a product of bytes, of which four terms lie side by side in either operand.
const (
	integers = `input t0 u8[2,2,4]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 i0 r0 r1]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	dotFours = "reorder 0 0 2 3 1\nvectorize 0 1\ndot 0 3\n"
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
	f := pass.Promote(unrolled(t, pairs, twos))
	kerneltest.Golden(t, "dot/pairs_before", f)
	kerneltest.Golden(t, "dot/pairs_after", pass.Dot(f, func(x machine.DotTypes, terms int64) bool {
		return x == machine.DotTypes{A: array.BFloat16, B: array.BFloat16} && terms == 2
	}))
}

func TestStepsOfIntegerSumsAreOneInstruction(t *testing.T) {
	f := pass.Promote(unrolled(t, integers, dotFours))
	kerneltest.Golden(t, "dot/before", f)
	unsignedBySigned := func(x machine.DotTypes, terms int64) bool {
		return x == machine.DotTypes{A: array.Uint8, B: array.Int8} && terms == 4
	}
	kerneltest.Golden(t, "dot/after", pass.Dot(f, unsignedBySigned))
	kerneltest.Golden(t, "dot/without", pass.Dot(f, func(machine.DotTypes, int64) bool { return false }))
}

// TestLanesOfGroupsPickTheirTerms: channels of a group read the same terms, those of several groups their own.
func TestLanesOfGroupsPickTheirTerms(t *testing.T) {
	const groups = `input t0 u8[2,16]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 i0 (add (add (mul (floordiv i1 4) 8) (mul r0 4)) r1)]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	f := pass.Promote(unrolled(t, groups, dotFours))
	kerneltest.Golden(t, "dot/groups", pass.Dot(f, func(machine.DotTypes, int64) bool { return true }))
}

// TestDistantTermsAreInterleaved: each lane's terms are in vectors of their own, of which a register has the first
// elements, then the second ones, and so on.
func TestDistantTermsAreInterleaved(t *testing.T) {
	const window = `input t0 u8[2,7,8]
constant t1 i8[2,8,4]
sum t2 i32[2,8] over 2,4 = (mul (cast i32 [t0 r0 (add i0 r1) i1]) (cast i32 [t1 r0 i1 r1]))
output t2
`
	f := pass.Promote(unrolled(t, window, dotFours))
	kerneltest.Golden(t, "dot/turns", pass.Dot(f, func(machine.DotTypes, int64) bool { return true }))
}
