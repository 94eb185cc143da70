package rewrite_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// bytesOf returns x, quantised to a type of 8 bits as q, with scale one and zero point z, and weights in int8: w of a
// convolution by 3x3, d of a depthwise one, m of a product.
func bytesOf(d array.DType, zero int64) modeltest.Model {
	z := array.New(d)
	z.SetInt(0, zero)
	known := func(shape ...int64) *array.Array {
		a := array.New(array.Int8, shape...)
		for i := range a.Len() {
			a.SetInt(i, (i*i*7+3*i)%255-127)
		}
		return a
	}
	return modeltest.New().Input("x", 1, 8, 6, 6).Known("one", scalarOf(0.02)).Known("z", z).Known("s", scalarOf(0.7)).Known("none", array.New(array.Int8)).
		Known("w", known(8, 8, 3, 3)).Known("d", known(8, 1, 3, 3)).Known("m", known(6, 10)).Node("q = QuantizeLinear x one z")
}

// TestBytesAreShiftedToTheTypeThatIsMultiplied: results are those of the bytes as they are in the model, padding and
// zero points included, and no product reads bytes of the other type.
func TestBytesAreShiftedToTheTypeThatIsMultiplied(t *testing.T) {
	conv := func(s modeltest.Model) modeltest.Model {
		return s.Node("y = QLinearConv q one z w one none s z", modeltest.Same3x3)
	}
	for name, build := range map[string]func(modeltest.Model) modeltest.Model{
		"convolution": conv,
		"depthwise convolution": func(s modeltest.Model) modeltest.Model {
			return s.Node("y = ConvInteger q d z", modeltest.Same3x3, modeltest.Int("group", 8))
		},
		"product":       func(s modeltest.Model) modeltest.Model { return s.Node("y = QLinearMatMul q one z m one none s z") },
		"no zero point": func(s modeltest.Model) modeltest.Model { return s.Node("y = ConvInteger q w", modeltest.Same3x3) },
		"what is moved": func(s modeltest.Model) modeltest.Model {
			return conv(s.Node("p = MaxPool q", modeltest.Ints("kernel_shape", 3, 3), modeltest.Ints("pads", 1, 1, 1, 1)).
				Node("c = Concat p q", modeltest.Int("axis", 2)).Node("q2 = Slice c begin end axis")).Node("u = QLinearConv q2 one z w one none s z")
		},
		"other readers": func(s modeltest.Model) modeltest.Model {
			return s.Node("a = ConvInteger q w z", modeltest.Same3x3).Node("b = DequantizeLinear q one z").Node("f = Cast a", modeltest.Int("to", 1)).
				Node("y = Add f b").Node("u = Neg b")
		},
		"a result of bytes": func(s modeltest.Model) modeltest.Model {
			return s.Node("k = Identity q").Node("y = ConvInteger k w z", modeltest.Same3x3).Node("u = Identity q")
		},
	} {
		for _, c := range []struct {
			from, to array.DType
			zero     int64
		}{{array.Int8, array.Uint8, 0}, {array.Int8, array.Uint8, -11}, {array.Uint8, array.Int8, 0}, {array.Uint8, array.Int8, 119}} {
			t.Run(name+" "+c.from.String(), func(t *testing.T) {
				start := bytesOf(c.from, c.zero)
				for k, v := range map[string]int64{"begin": 2, "end": 11, "axis": 2} {
					start = start.Known(k, array.FromInt64([]int64{v}, 1))
				}
				m := build(start).Output("y")
				for _, n := range m.Graph.Nodes {
					if n.Outputs[0] == "u" {
						m.Graph.Outputs = append(m.Graph.Outputs, modeltest.Info("u", nil))
					}
				}
				want, err := frontend.Import(m, frontend.Options{Verify: true})
				if err != nil {
					t.Fatal(err)
				}
				got, err := frontend.Import(m, frontend.Options{Verify: true, Storage: array.Storage{Bytes: c.to}})
				if err != nil {
					t.Fatal(err)
				}
				products := 0
				for _, task := range got.Tasks {
					text := task.Workload.Text()
					if !strings.Contains(text, "(mul (cast i32 [") {
						continue
					}
					products++
					if reads := "input t0 " + c.to.String() + "["; !strings.Contains(text, reads) {
						t.Errorf("there is no %q in a product:\n%s", reads, text)
					}
				}
				if products == 0 {
					t.Error("there is no product")
				}
				outs := modeltest.Run(t, want)
				for name, a := range modeltest.Run(t, got) {
					if !bytes.Equal(a.Data, outs[name].Data) {
						t.Errorf("%s is %v, want %v", name, a, outs[name])
					}
				}
			})
		}
	}
}
