package frontend_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestImportIsDeterministic(t *testing.T) {
	make := func() *program.Program {
		return modeltest.Import(t, modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 3, 3).Constant("v", 8, 8, 1, 1).
			Node("a = Conv x w", modeltest.Same3x3).Node("b = Conv x v").Node("s = Add a b").Node("y = Relu s").
			Node("z = GlobalMaxPool y").Output("z", "y"))
	}
	first := make()
	for range 20 {
		if !reflect.DeepEqual(make().Calls, first.Calls) || !reflect.DeepEqual(modeltest.TaskNames(make()), modeltest.TaskNames(first)) {
			t.Fatal("two imports of one model differ")
		}
	}
}

// Each link of the chain reads the one before twice: as one expression forty of them would have 2^40 nodes.
func TestChainOfDoublingsStaysSmall(t *testing.T) {
	s := modeltest.New().Input("x0", 2, 8)
	for k := range 40 {
		s = s.Node(fmt.Sprintf("x%d = Add x%d x%d", k+1, k, k))
	}
	p := modeltest.Import(t, s.Output("x40"))
	got := modeltest.Run(t, p)["x40"]
	if want := 0x1p40 * modeltest.Wave(0, 1, 2, 8).Float(3); math.Abs(got.Float(3)/want-1) > 1e-5 {
		t.Errorf("got %g, want %g", got.Float(3), want)
	}
}

func TestImportRefuses(t *testing.T) {
	sequence := modeltest.New().Input("x", 1)
	sequence.Graph.Inputs[0].Kind = "sequence"
	foreign := modeltest.New().Input("x", 1).Node("y = Relu x")
	foreign.Graph.Nodes[0].Domain = "com.example"
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"unknown operator", modeltest.New().Input("x", 1).Node("y = Fancy x").Output("y"),
			`node "make_y" (Fancy, opset 13): the operator is not supported`},
		{"foreign domain", foreign.Output("y"), `node "make_y" (Relu, opset 0): operators of domain "com.example" are not supported`},
		{"sequence", sequence.Output("x"), `input "x" is a sequence: only tensors are supported`},
		{"dangling operand", modeltest.New().Node("y = Relu x").Output("y"),
			`node "make_y" (Relu): input "x" is computed by no earlier node`},
		{"missing output", modeltest.New().Output("y"), `output "y" is computed by no node`},
		{"computed twice", modeltest.New().Input("x", 1).Node("y = Relu x").Node("y = Relu x").Output("y"),
			`node "make_y" (Relu): value "y" is computed twice`},
		{"an operator of the compiler's own", modeltest.New().Input("x", 1).Node("y = copy x").Output("y"),
			`node "make_y" (copy, opset 13): the operator is not supported`},
		{"dynamic shape", modeltest.New().Input("x", 1).Input("s", 1).Node("y = Reshape x s").Output("y"),
			`node "make_y" (Reshape, opset 13): input 1 (shape) is not constant: dynamic shapes are not supported`},
		{"shapes that do not fit", modeltest.New().Input("x", 2).Input("z", 3).Node("y = Add x z").Output("y"),
			`node "make_y" (Add, opset 13): input 1: shapes [2] and [3] cannot be broadcast`},
		{"attribute of a wrong type", modeltest.New().Input("x", 2).Node("y = Softmax x", modeltest.Ints("axis", 0)).Output("y"),
			`attribute "axis" has type 7, want 2`},
		{"groups that do not fit", modeltest.New().Input("x", 1, 6, 3, 3).Constant("w", 4, 6, 1, 1).
			Node("y = Conv x w", modeltest.Int("group", 4)).Output("y"), "and 4 groups do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := frontend.Import(c.model, frontend.Options{Verify: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
