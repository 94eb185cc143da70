package importer_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestAttributesOfOldOperatorsBecomeOperands(t *testing.T) {
	for _, c := range []struct {
		name      string
		opset     int64
		attribute string
		list      []int64
		ok        bool
	}{
		{"Reshape", 1, "shape", []int64{0, 3, -1}, true},
		{"Reshape", 4, "shape", []int64{2, 3, 2}, true},
		{"Reshape", 5, "shape", []int64{2, 3, 2}, false},
		{"Reshape", 4, "dims", []int64{2, 3, 2}, false},
		{"Reshape", 4, "shape", []int64{5}, false},
		{"Pad", 1, "paddings", []int64{0, 0, 0, 0}, true},
		{"Pad", 1, "paddings", []int64{0}, false},
		{"Pad", 2, "paddings", []int64{0, 0, 0, 0}, false},
	} {
		m := modeltest.New().Opset(c.opset).Input("x", 2, 6).Node("y = "+c.name+" x", modeltest.Ints(c.attribute, c.list...)).Output("y")
		p, err := frontend.Import(m, frontend.Options{Verify: true})
		if ok := err == nil; ok != c.ok {
			t.Errorf("%s of opset %d with %s: %v", c.name, c.opset, c.attribute, err)
		} else if ok && array.Elements(p.Values[p.Outputs[0]].Shape) != 12 {
			t.Errorf("%s of opset %d has shape %v", c.name, c.opset, p.Values[p.Outputs[0]].Shape)
		}
	}
}
