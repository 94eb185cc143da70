package op_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestIntegerProductsAreExactForEveryZeroPoint: known weights are multiplied as bytes, also where their differences to
// the zero points need more.
func TestIntegerProductsAreExactForEveryZeroPoint(t *testing.T) {
	const rows, depth, columns = 3, 20, 7
	one := func(d array.DType, v int64) *array.Array { return numbers(d, v, v) }
	signed, unsigned := numbers(array.Int8, -128, 127, depth, columns), numbers(array.Uint8, 0, 255, depth, columns)
	for name, c := range map[string]struct{ w, wz, xz *array.Array }{
		"middle":                {unsigned, one(array.Uint8, 128), one(array.Uint8, 7)},
		"elsewhere":             {unsigned, one(array.Uint8, 90), one(array.Uint8, 7)},
		"none":                  {unsigned, nil, nil},
		"without x":             {unsigned, one(array.Uint8, 255), nil},
		"each column":           {unsigned, numbers(array.Uint8, 0, 255, columns), one(array.Uint8, 200)},
		"each row of x":         {unsigned, one(array.Uint8, 3), numbers(array.Uint8, 0, 255, rows)},
		"signed":                {signed, one(array.Int8, -100), one(array.Uint8, 9)},
		"signed, each column":   {signed, numbers(array.Int8, -128, 127, columns), nil},
		"a matrix for each row": {numbers(array.Uint8, 0, 255, rows, depth, columns), numbers(array.Uint8, 0, 255, rows, 1, columns), one(array.Uint8, 9)},
		"of a vector":           {numbers(array.Uint8, 0, 255, depth), one(array.Uint8, 90), one(array.Uint8, 9)},
	} {
		for _, known := range []bool{true, false} {
			m := modeltest.New().Known("w", c.w)
			in := modeltest.Info("x", []int64{rows, depth})
			in.DType = array.Uint8
			m.Graph.Inputs = append(m.Graph.Inputs, in)
			inputs := map[string]*array.Array{"x": numbers(array.Uint8, 0, 255, rows, depth)}
			node := "y = MatMulInteger x w"
			for z, a := range map[string]*array.Array{"xz": c.xz, "wz": c.wz} {
				switch {
				case a == nil:
				case known || z == "wz":
					m = m.Known(z, a)
				default:
					info := modeltest.Info(z, a.Shape)
					info.DType = a.DType
					m.Graph.Inputs, inputs[z] = append(m.Graph.Inputs, info), a
				}
			}
			operand := func(a *array.Array, name string) string {
				if a == nil {
					return " _"
				}
				return " " + name
			}
			p := modeltest.Import(t, m.Node(node+operand(c.xz, "xz")+operand(c.wz, "wz")).Output("y"))
			got, err := evaluate.Program(p, inputs)
			if err != nil {
				t.Fatal(err)
			}
			want := integerProduct(inputs["x"], c.xz, c.w, c.wz)
			for i := range got["y"].Len() {
				if got["y"].Int(i) != want[i] {
					t.Errorf("%s: element %d is %d, want %d", name, i, got["y"].Int(i), want[i])
					break
				}
			}
			for _, v := range p.Values {
				if v.Data != nil && v.Data.Len() == c.w.Len() && c.w.Len() > depth && v.DType.Bytes() > 1 {
					t.Errorf("%s: weights are %v", name, v.DType)
				}
			}
		}
	}
}

// integerProduct returns the elements of (x-xz) times (w-wz), term by term, where w is one matrix, one of each row
// of x, or a vector.
func integerProduct(x, xz, w, wz *array.Array) (product []int64) {
	rows, depth, columns, batches := x.Shape[0], x.Shape[1], int64(1), int64(1)
	if rank := len(w.Shape); rank > 1 {
		columns, batches = w.Shape[rank-1], array.Elements(w.Shape[:rank-2])
	}
	zero := func(z *array.Array, i int64) int64 {
		if z == nil {
			return 0
		}
		return z.Int(i % z.Len())
	}
	for b := range batches {
		for r := range rows {
			for c := range columns {
				var sum int64
				for k := range depth {
					sum += (x.Int(r*depth+k) - zero(xz, r)) * (w.Int((b*depth+k)*columns+c) - zero(wz, b*columns+c))
				}
				product = append(product, sum)
			}
		}
	}
	return product
}
