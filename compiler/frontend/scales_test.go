package frontend

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

func TestScalesOfQueriesAndKeysJoinTheAttention(t *testing.T) {
	m := newSketch().input("q", 1, 2, 6, 4).input("k", 1, 2, 6, 4).input("v", 1, 2, 6, 4).known("s", array.FromFloat32([]float32{0.5})).
		known("r", array.FromFloat32([]float32{0.25})).node("a = Mul q s").node("b = Mul r k").node("t = Transpose b", intsAttr("perm", 0, 1, 3, 2)).
		node("m = MatMul a t").node("p = Softmax m").node("y = MatMul p v").output("y")
	p := mustImport(t, m)
	if len(p.Calls) != 1 {
		t.Errorf("tasks are %q", taskNames(p))
	}
	checkProgram(t, p)
	checkMeaning(t, m, p)
}

func TestScalesThatOthersReadStay(t *testing.T) {
	m := newSketch().input("q", 1, 2, 6, 4).input("k", 1, 2, 4, 6).input("v", 1, 2, 6, 4).known("s", array.FromFloat32([]float32{0.5})).
		node("a = Mul q s").node("m = MatMul a k").node("p = Softmax m").node("n = MatMul p v").node("y = Add n a").output("y")
	p := mustImport(t, m)
	checkProgram(t, p)
	checkMeaning(t, m, p)
}
