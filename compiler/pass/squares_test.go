package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// squaresProduct is one of bytes whose terms come in eights, with a map behind it, and tile a tile of it: of so many
// rows and two vectors of four columns, in registers.
const (
	squaresProduct = `input t0 u8[6,2,8]
constant t1 i8[2,8,8]
sum t2 i32[6,8] over 2,8 = (mul (cast i32 [t0 i0 r0 r1]) (cast i32 [t1 r0 i1 r1]))
map t3 i32[6,8] = (max [t2 i0 i1] 0:i32)
output t3
`
	squaresTile = `split 1 0 ROWS 0
unroll 1 3
split 1 1 4 0
unroll 1 4
vectorize 1 5
compute-at 0 1 2
split 0 1 4 0
reorder 0 2 0 4 3 5
unroll 0 0
unroll 0 4
vectorize 0 5
dot 0 3
`
)

// dotted returns the product with as many rows in a tile, in dot products.
func dotted(t *testing.T, rows string) *ir.Func {
	t.Helper()
	f := pass.Promote(unrolled(t, squaresProduct, strings.ReplaceAll(squaresTile, "ROWS", rows)))
	return pass.Dot(f, func(_ machine.DotTypes, terms int64) bool { return terms == 8 })
}

// rowsFirst is an instruction of rows of unsigned bytes and columns of signed ones, columnsFirst one of the other.
func rowsFirst(rows, _ array.DType, _ int64) (turned, ok bool)    { return false, rows == array.Uint8 }
func columnsFirst(rows, _ array.DType, _ int64) (turned, ok bool) { return true, rows == array.Uint8 }

func TestTwoRowsAreMultipliedByTheSameColumns(t *testing.T) {
	f := dotted(t, "2")
	kerneltest.Golden(t, "squares/before", f)
	kerneltest.Golden(t, "squares/after", pass.Squares(f, rowsFirst))
	kerneltest.Golden(t, "squares/turned", pass.Squares(f, columnsFirst))
}

// TestOddRowsAreMultipliedAlone: of three, one is multiplied alone.
func TestOddRowsAreMultipliedAlone(t *testing.T) {
	kerneltest.Golden(t, "squares/three", pass.Squares(dotted(t, "3"), rowsFirst))
}

// TestStepsWithoutALoopAreMultiplied: what is written out whole has no loop to be a square in.
func TestStepsWithoutALoopAreMultiplied(t *testing.T) {
	f := pass.Promote(unrolled(t, squaresProduct, strings.ReplaceAll(squaresTile, "ROWS", "2")+"unroll 0 2\n"))
	f = pass.Dot(f, func(_ machine.DotTypes, terms int64) bool { return terms == 8 })
	kerneltest.Golden(t, "squares/straight", pass.Squares(f, rowsFirst))
}

// TestScalarColumnsDoNotPreventSquares: of five columns, the last is added up by itself.
func TestScalarColumnsDoNotPreventSquares(t *testing.T) {
	five := strings.NewReplacer("6,8", "6,5", "2,8,8", "2,5,8").Replace(squaresProduct)
	f := pass.Promote(unrolled(t, five, strings.ReplaceAll(squaresTile, "ROWS", "2")))
	kerneltest.Golden(t, "squares/five", pass.Squares(pass.Dot(f, func(_ machine.DotTypes, terms int64) bool { return terms == 8 }), rowsFirst))
}

func TestWithoutInstructionsNothingChanges(t *testing.T) {
	f := dotted(t, "2")
	if got := pass.Squares(f, func(_, _ array.DType, _ int64) (turned, ok bool) { return false, false }); got.Text() != f.Text() {
		t.Errorf("the program changed:\n%s", got.Text())
	}
}
