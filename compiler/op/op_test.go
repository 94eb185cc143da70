package op

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// TestResizeOfAScalarWithAxes: an axis of a value without axes once was an index out of range.
func TestResizeOfAScalarWithAxes(t *testing.T) {
	n := &Node{Op: "Resize", Opset: 18, In: []Value{{Type: Type{DType: array.Float32}}}}
	n.Attrs = map[string]*onnx.Attribute{"axes": {Name: "axes", Type: onnx.AttrInts, Ints: []int64{0}}}
	if err := Infer(n, &resizeDefs[0]); err == nil {
		t.Error("axis 0 of a scalar was accepted")
	}
}
