package importer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// open returns a model of two inputs with open extents: "x" (batch x 3 x seq) and "mask" (batch x seq).
func open() *onnx.Model {
	s := modeltest.New().Input("x", 1, 3, 1).Input("mask", 1, 1).Node("y = Relu x").Node("z = Relu mask")
	s.Graph.Inputs[0].Shape[0], s.Graph.Inputs[0].Shape[2] = named("batch"), named("seq")
	s.Graph.Inputs[1].Shape[0], s.Graph.Inputs[1].Shape[1] = named("batch"), named("seq")
	s.Output("y")
	return s.Output("z")
}

func named(symbol string) onnx.Dim { return onnx.Dim{Value: -1, Param: symbol} }

func TestOpenExtentsCanBeFixed(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string][]int64
	}{
		{"by symbols", map[string][]int64{"batch": {2}, "seq": {5}}},
		{"by shapes", map[string][]int64{"x": {2, 3, 5}, "mask": {2, 5}}},
		{"by a shape that fixes the symbols of another input", map[string][]int64{"x": {2, 3, 5}}},
		{"by a symbol and a shape", map[string][]int64{"batch": {2}, "mask": {2, 5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := frontend.Import(open(), frontend.Options{Shapes: c.given})
			if err != nil {
				t.Fatal(err)
			}
			if y, z := p.Values[p.Outputs[0]].Shape, p.Values[p.Outputs[1]].Shape; !slices.Equal(y, []int64{2, 3, 5}) || !slices.Equal(z, []int64{2, 5}) {
				t.Errorf("outputs have shapes %v and %v", y, z)
			}
		})
	}
}

func TestShapesThatAreRefused(t *testing.T) {
	unnamed := open()
	unnamed.Graph.Inputs[1].Shape[1] = onnx.Dim{Value: -1}
	shapeless := open()
	shapeless.Graph.Inputs[1].HasShape, shapeless.Graph.Inputs[1].Shape = false, nil
	for _, c := range []struct {
		name  string
		model *onnx.Model
		given map[string][]int64
		want  string
	}{
		{"nothing given", open(), nil,
			`open extents in input "x" (batch x 3 x seq), "mask" (batch x seq): fix them, for example by --shape batch=1,seq=1`},
		{"one left open", open(), map[string][]int64{"batch": {4}},
			`open extents in input "x" (batch x 3 x seq), "mask" (batch x seq): fix them, for example by --shape seq=1`},
		{"open without a symbol", unnamed, map[string][]int64{"batch": {4}, "seq": {5}},
			`open extents in input "mask" (batch x mask.1): fix them, for example by --shape mask=4x1`},
		{"no shape at all", shapeless, map[string][]int64{"x": {1, 3, 5}},
			`open extents in input "mask" (of no shape): fix them, for example by --shape mask=1x3x224x224`},
		{"unknown name", open(), map[string][]int64{"bath": {1}},
			`no input or open extent "bath": the model's inputs are "x" (batch x 3 x seq), "mask" (batch x seq)`},
		{"wrong rank", open(), map[string][]int64{"x": {1}}, `input "x" (batch x 3 x seq) has rank 3 and cannot take shape 1`},
		{"wrong extent", open(), map[string][]int64{"x": {1, 4, 5}}, `input "x" has extent 3 at axis 1 and cannot take shape 1x4x5`},
		{"a symbol with a shape", open(), map[string][]int64{"batch": {1, 2}},
			`"batch" is the open extent of an axis and cannot be 1x2: give one number`},
		{"two values of a symbol", open(), map[string][]int64{"mask": {1, 5}, "x": {2, 3, 5}},
			`open extent "batch" would be 1 for "mask" and 2 for "x": it must be the same everywhere`},
		{"too large", open(), map[string][]int64{"batch": {1 << 40}, "seq": {1 << 40}}, `input "x" cannot have shape`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := frontend.Import(c.model, frontend.Options{Shapes: c.given})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
