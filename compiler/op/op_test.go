package op

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// TestSupportedIsTheCallersOwn: appending to it and sorting once changed the table itself.
func TestSupportedIsTheCallersOwn(t *testing.T) {
	more := append(Supported(), "Aardvark")
	slices.Sort(more)
	if !slices.Equal(Supported(), names) || slices.Contains(names, "Aardvark") || !slices.IsSorted(names) {
		t.Errorf("the table became %v", names)
	}
	for _, name := range names {
		if _, ok := refused[name]; ok {
			t.Errorf("%s is supported and refused", name)
		}
	}
}

// TestResizeOfAScalarWithAxes: an axis of a value without axes once was an index out of range.
func TestResizeOfAScalarWithAxes(t *testing.T) {
	n := &Node{Op: "Resize", Opset: 18, In: []Value{{Type: Type{DType: array.Float32}}}}
	n.Attrs = map[string]*onnx.Attribute{"axes": {Name: "axes", Type: onnx.AttrInts, Ints: []int64{0}}}
	if err := Infer(n); err == nil {
		t.Error("axis 0 of a scalar was accepted")
	}
}
