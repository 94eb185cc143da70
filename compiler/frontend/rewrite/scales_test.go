package rewrite_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestScalesOfQueriesAndKeysJoinTheAttention(t *testing.T) {
	m := modeltest.New().Input("q", 1, 2, 6, 4).Input("k", 1, 2, 6, 4).Input("v", 1, 2, 6, 4).Known("s", array.FromFloat32([]float32{0.5})).
		Known("r", array.FromFloat32([]float32{0.25})).Node("a = Mul q s").Node("b = Mul r k").Node("t = Transpose b", modeltest.Ints("perm", 0, 1, 3, 2)).
		Node("m = MatMul a t").Node("p = Softmax m").Node("y = MatMul p v").Output("y")
	p := modeltest.Import(t, m)
	if len(p.Calls) != 1 {
		t.Errorf("tasks are %q", modeltest.TaskNames(p))
	}
	modeltest.Check(t, p)
	modeltest.CheckMeaning(t, m, p)
}

func TestScalesThatOthersReadStay(t *testing.T) {
	m := modeltest.New().Input("q", 1, 2, 6, 4).Input("k", 1, 2, 4, 6).Input("v", 1, 2, 6, 4).Known("s", array.FromFloat32([]float32{0.5})).
		Node("a = Mul q s").Node("m = MatMul a k").Node("p = Softmax m").Node("n = MatMul p v").Node("y = Add n a").Output("y")
	p := modeltest.Import(t, m)
	modeltest.Check(t, p)
	modeltest.CheckMeaning(t, m, p)
}
