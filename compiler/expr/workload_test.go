package expr

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func TestBytesCountWhatIsRead(t *testing.T) {
	if got, want := matmul(t).Bytes(), int64(4*(4*8+8*16+4*16)); got != want {
		t.Errorf("product: %d bytes, want %d", got, want)
	}
	table, row := NewConstant("table", array.Float32, 1000, 8), NewInput("row", array.Int64, 3)
	picked := Compute("picked", []int64{3, 8}, func(i []Expr) Expr { return table.At(row.At(i[0]), i[1]) })
	w, err := NewWorkload([]*Tensor{picked})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.Bytes(), int64(3*8*4+3*8+3*8*4); got != want {
		t.Errorf("look-up: %d bytes, want %d", got, want)
	}
}
