package op

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
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

// TestEmptyReshapesHaveRuns: the rest of an open shape after an extent of 0 once was an index out of range.
func TestEmptyReshapesHaveRuns(t *testing.T) {
	var set extent.Set
	zero, one, batch := extent.Of(0), extent.Of(1), set.Add(&extent.Symbol{Name: "batch", Min: 1, Max: 9, Step: 1})
	for _, to := range []extent.Shape{extent.ShapeOf(one, zero, one, batch), extent.ShapeOf(batch, zero), extent.ShapeOf(zero), extent.ShapeOf(zero, batch, batch)} {
		for _, from := range []extent.Shape{extent.ShapeOf(zero, batch), extent.ShapeOf(batch, zero, one)} {
			count := 0
			for _, r := range runsOf(from, to) {
				count += len(r.from) + len(r.to)
			}
			if count != from.Rank()+to.Rank() {
				t.Errorf("the runs of %v to %v have %d axes", from, to, count)
			}
		}
	}
}
