package frontend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

func TestProductsOfOneOperandAreMerged(t *testing.T) {
	image := func() sketch {
		return newSketch().input("x", 1, 8, 5, 5).constant("w", 4, 8, 1, 1).constant("v", 6, 8, 1, 1).constant("b", 4).constant("d", 6)
	}
	half := array.FromFloat32([]float32{0.5})
	for _, c := range []struct {
		name  string
		model *onnx.Model
		tasks []string
	}{
		{
			"queries, keys and values", newSketch().input("x", 1, 6, 8).constant("wq", 8, 4).constant("wk", 8, 4).constant("wv", 8, 3).
				constant("bq", 4).constant("bk", 4).constant("bv", 3).
				node("p = MatMul x wq").node("r = MatMul x wk").node("s = MatMul x wv").
				node("q = Add bq p").node("k = Add bk r").node("v = Add bv s").
				node("t = Transpose k", intsAttr("perm", 0, 2, 1)).node("m = MatMul q t").node("a = Softmax m").node("y = MatMul a v").output("y"),
			[]string{"1 matmul+add 1x6x8 x 8x11 -> 1x6x11", "1 attention 1x6x4 x 1x4x6 -> 1x6x3"},
		},
		{
			"convolutions with bias, scale and activation", image().known("half", half).node("a = Conv x w b").node("c = Conv x v d").
				node("e = Mul a half").node("f = Mul c half").node("g = Relu e").node("h = Relu f").
				node("i = GlobalMaxPool g").node("j = GlobalMaxPool h").output("i", "j"),
			[]string{"1 conv2d+mul+relu 1x8x5x5 k1x1 -> 10", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"dense layers", newSketch().input("x", 2, 8).constant("w", 8, 4).constant("v", 8, 3).constant("b", 4).constant("d", 1).
				node("a = Gemm x w b").node("c = Gemm x v d").node("e = Softmax a").node("f = Softmax c").output("e", "f"),
			[]string{"1 dense 2x8 -> 7", "1 softmax 2x4 axes [1] -> 2x4", "1 softmax 2x3 axes [1] -> 2x3"},
		},
		{
			"not with different activations", image().node("a = Conv x w b").node("c = Conv x v d").
				node("g = Relu a").node("h = Sigmoid c").node("i = GlobalMaxPool g").node("j = GlobalMaxPool h").output("i", "j"),
			[]string{"1 conv2d+relu 1x8x5x5 k1x1 -> 4", "1 conv2d+sigmoid 1x8x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"not with different bounds", image().known("one", array.FromFloat32([]float32{1})).known("two", array.FromFloat32([]float32{2})).
				node("a = Conv x w b").node("c = Conv x v d").
				node("g = Clip a _ one").node("h = Clip c _ two").node("i = GlobalMaxPool g").node("j = GlobalMaxPool h").output("i", "j"),
			[]string{"1 conv2d+clip 1x8x5x5 k1x1 -> 4", "1 conv2d+clip 1x8x5x5 k1x1 -> 6", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x6 -> 6"},
		},
		{
			"not when one is written into a concatenation", image().node("a = Conv x w b").node("c = Conv x v d").
				node("m = MaxPool c", intsAttr("kernel_shape", 1, 1)).node("k = Concat a m", intAttr("axis", 1)).node("y = GlobalMaxPool k").output("y"),
			[]string{"1 conv2d 1x8x5x5 k1x1 -> 4", "1 conv2d 1x8x5x5 k1x1 -> 6", "1 maxpool 1x5x5x6 k1x1 -> 6", "1 globalmaxpool 1x5x5x10 -> 10"},
		},
		{
			"not when one takes in a residual addition", image().constant("u", 8, 8, 1, 1).node("a = Conv x w b").node("c = Conv x u").node("s = Add c x").
				node("i = GlobalMaxPool a").node("j = GlobalMaxPool s").output("i", "j"),
			[]string{"1 conv2d 1x8x5x5 k1x1 -> 4", "1 conv2d+add 1x8x5x5 k1x1 -> 8", "1 globalmaxpool 1x5x5x4 -> 4", "1 globalmaxpool 1x5x5x8 -> 8"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustImport(t, c.model)
			checkTasks(t, p, c.tasks...)
			checkProgram(t, p)
			checkMeaning(t, c.model, p)
		})
	}
}

// pairs has so many pairs of products of one operand, each pair with a bound of its own, so that no two pairs are
// merged.
func pairs(n int) *onnx.Model {
	m := newSketch().input("x", 1, 4)
	var sums []string
	for k := range n {
		m = m.known(fmt.Sprint("bound", k), array.FromFloat32([]float32{float32(k)}))
		for _, side := range []string{"l", "r"} {
			name := fmt.Sprint(side, k)
			m = m.constant("w"+name, 4, 4).node(fmt.Sprintf("p%s = MatMul x w%s", name, name)).
				node(fmt.Sprintf("c%s = Clip p%s _ bound%d", name, name, k)).node(fmt.Sprintf("s%s = ReduceSum c%s", name, name))
			sums = append(sums, "s"+name)
		}
	}
	return m.node("y = Sum " + strings.Join(sums, " ")).output("y")
}

// Each pair that was merged had the whole graph gone through again. What import allocates stands for what it does.
func TestMergingSiblingsCostsInProportionToTheirNumber(t *testing.T) {
	cost := func(n int) uint64 {
		p, bytes, err := importCost(op.DefaultLimits, pairs(n))
		if err != nil {
			t.Fatal(err)
		}
		if want := n + 2*n; len(p.Calls) != want {
			t.Fatalf("%d pairs take %d calls, want %d: a product each, and two sums", n, len(p.Calls), want)
		}
		return bytes
	}
	if once, twice := cost(200), cost(400); twice > once*5/2 {
		t.Errorf("import allocates %d bytes, and %d for twice as much", once, twice)
	}
}
