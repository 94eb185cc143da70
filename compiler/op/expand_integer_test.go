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

// TestIntegerConvolutionsAreExactForEveryZeroPoint does so for convolutions, whose padding counts as the zero point
// of x.
func TestIntegerConvolutionsAreExactForEveryZeroPoint(t *testing.T) {
	const side, out = 5, 6
	one := func(d array.DType, v int64) *array.Array { return numbers(d, v, v) }
	for name, c := range map[string]struct {
		channels, groups int64
		kind             array.DType
		wz, xz           *array.Array
	}{
		"none":                        {4, 1, array.Uint8, nil, nil},
		"middle":                      {4, 1, array.Uint8, one(array.Uint8, 128), one(array.Uint8, 7)},
		"elsewhere":                   {4, 1, array.Uint8, one(array.Uint8, 90), one(array.Uint8, 7)},
		"without x":                   {4, 1, array.Uint8, one(array.Uint8, 255), nil},
		"each channel":                {4, 1, array.Uint8, numbers(array.Uint8, 0, 255, out), one(array.Uint8, 200)},
		"each channel, three colours": {3, 1, array.Uint8, numbers(array.Uint8, 0, 255, out), one(array.Uint8, 200)},
		"signed":                      {4, 1, array.Int8, one(array.Int8, -100), one(array.Uint8, 9)},
		"groups":                      {4, 2, array.Uint8, numbers(array.Uint8, 0, 255, out), one(array.Uint8, 9)},
	} {
		x := numbers(array.Uint8, 0, 255, 1, c.channels, side, side)
		lo, hi := int64(0), int64(255)
		if c.kind == array.Int8 {
			lo, hi = -128, 127
		}
		w := numbers(c.kind, lo, hi, out, c.channels/c.groups, 3, 3)
		m := modeltest.New().Known("w", w)
		info := modeltest.Info("x", x.Shape)
		info.DType = array.Uint8
		m.Graph.Inputs = append(m.Graph.Inputs, info)
		node := "y = ConvInteger x w"
		for _, z := range []struct {
			name string
			a    *array.Array
		}{{"xz", c.xz}, {"wz", c.wz}} {
			if z.a == nil {
				node += " _"
				continue
			}
			m, node = m.Known(z.name, z.a), node+" "+z.name
		}
		p := modeltest.Import(t, m.Node(node, modeltest.Ints("pads", 1, 0, 0, 1), modeltest.Ints("strides", 2, 1), modeltest.Int("group", c.groups)).Output("y"))
		got, err := evaluate.Program(p, map[string]*array.Array{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		zero := func(z *array.Array, i int64) int64 {
			if z == nil {
				return 0
			}
			return z.Int(i % z.Len())
		}
		for i := range got["y"].Len() {
			columns, rows := got["y"].Shape[3], got["y"].Shape[2]
			o, row, column := i/columns/rows, i/columns%rows*2-1, i%columns
			var want int64
			for k := range w.Len() / out {
				at, r, s := o/(out/c.groups)*(c.channels/c.groups)+k/9, row+k/3%3, column+k%3
				if r >= 0 && s < side {
					want += (x.Int((at*side+r)*side+s) - zero(c.xz, 0)) * (w.Int(o*w.Len()/out+k) - zero(c.wz, o))
				}
			}
			if got["y"].Int(i) != want {
				t.Errorf("%s: element %d is %d, want %d", name, i, got["y"].Int(i), want)
				break
			}
		}
		for _, v := range p.Values {
			if v.Data != nil && v.Data.Len() >= w.Len() && v.DType.Bytes() > 1 && c.groups == 1 {
				t.Errorf("%s: weights are %v", name, v.DType)
			}
		}
	}
}
