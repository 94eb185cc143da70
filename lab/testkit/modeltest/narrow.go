package modeltest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// narrowModels returns models with the kinds of products whose factors may be stored in 16 bits: padded, strided,
// grouped and batched ones, with residuals, in concatenations, and attention. Some inputs are not stored in 16 bits.
func narrowModels() []*onnx.Model {
	image := func() Model {
		return New().Input("x", 1, 3, 13, 13).Constant("w0", 32, 3, 3, 3).Constant("b0", 32).
			Node("c0 = Conv x w0 b0", Same3x3).Node("r0 = Relu c0").Constant("w1", 48, 32, 1, 1).Constant("wd", 48, 1, 3, 3)
	}
	heads := array.FromInt64([]int64{2, 40, 2, 16}, 4)
	flat := array.FromInt64([]int64{80, 32}, 2)
	tokens := New().Input("x", 80, 32).Known("heads", heads).Known("flat", flat)
	for _, name := range []string{"q", "k", "v"} {
		tokens = tokens.Constant("w"+name, 32, 32).Node(name+"0 = MatMul x w"+name).Node(name+"1 = Reshape "+name+"0 heads").
			Node(name+" = Transpose "+name+"1", Ints("perm", 0, 2, 1, 3))
	}
	return []*onnx.Model{
		image().Node("c1 = Conv r0 w1").Node("d = Conv c1 wd", Same3x3, Int("group", 48)).Node("e = Relu d").
			Constant("w2", 32, 48, 1, 1).Node("c2 = Conv e w2").Node("s = Add c2 r0").Node("z = Relu s").
			Constant("w3", 16, 32, 3, 3).Node("y = Conv z w3", Same3x3, Ints("strides", 2, 2)).Output("y"),
		image().Node("p = MaxPool r0", Ints("kernel_shape", 2, 2), Ints("strides", 2, 2)).Node("a = Conv p w1").
			Constant("w2", 16, 32, 1, 1).Node("b = Conv p w2").Node("j = Concat a b", Int("axis", 1)).
			Constant("w3", 32, 64, 3, 3).Node("y = Conv j w3", Same3x3).Output("y"),
		tokens.Node("t = Transpose k", Ints("perm", 0, 1, 3, 2)).Node("qk = MatMul q t").Node("s = Softmax qk", Int("axis", -1)).
			Node("o = MatMul s v").Node("u = Transpose o", Ints("perm", 0, 2, 1, 3)).Node("f = Reshape u flat").
			Constant("wo", 32, 32).Node("m = MatMul f wo").Node("h = Add m x").Node("g = Erf h").Constant("w4", 32, 24).
			Node("y = MatMul g w4").Output("y"),
		New().Input("x", 2, 24, 5, 5).Node("r = Relu x").Constant("w", 24, 16, 4, 4).
			Node("u = ConvTranspose r w", Ints("strides", 2, 2)).Constant("w1", 16, 16, 1, 1).Node("y = Conv u w1").Output("y"),
	}
}

// NarrowTasks returns the workloads of small float32 models that store factors of products in a type.
func NarrowTasks(t *testing.T, storage array.DType) (list []*expr.Workload) {
	for _, m := range narrowModels() {
		p, err := frontend.Import(m, frontend.Options{Verify: true, Storage: array.Storage{Type: storage}})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range p.Tasks {
			list = append(list, task.Workload)
		}
	}
	return list
}
