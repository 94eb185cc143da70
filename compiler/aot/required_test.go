package aot

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// misfits returns models with a branch that does not fit the shapes: it is taken if x is negative.
func misfits() map[string]*onnx.Model {
	fits := func() modeltest.Model { return modeltest.New().Node("positive = Neg x") }
	unfit := func() modeltest.Model { return modeltest.New().Constant("c", 7).Node("negative = Add x c") }
	start := func() modeltest.Model {
		return modeltest.New().Input("x", 4).Known("zero", array.New(array.Float32)).
			Node("sum = ReduceSum x", modeltest.Int("keepdims", 0)).Node("below = Less sum zero").Node("above = Not below")
	}
	nested := func() modeltest.Model {
		return modeltest.New().Node("inner = If above", branch("then_branch", fits(), "positive"), branch("else_branch", unfit(), "negative"))
	}
	return map[string]*onnx.Model{
		"then":      start().Node("y = If below", branch("then_branch", unfit(), "negative"), branch("else_branch", fits(), "positive")).Output("y"),
		"else":      start().Node("y = If above", branch("then_branch", fits(), "positive"), branch("else_branch", unfit(), "negative")).Output("y"),
		"in a then": start().Node("y = If below", branch("then_branch", nested(), "inner"), branch("else_branch", fits(), "positive")).Output("y"),
		"in an else, with two outputs": start().Node("y = If above", branch("then_branch", fits(), "positive"), branch("else_branch", nested(), "inner")).
			Node("z = Exp x").Output("z", "y"),
	}
}

func TestBranchThatDoesNotFitIsAnErrorIfItIsTaken(t *testing.T) {
	for name, model := range misfits() {
		t.Run(name, func(t *testing.T) {
			p, err := frontend.Import(model, frontend.Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			m := opened(t, plain(t, p).Output)
			if got := len(m.Manifest().Outputs); got != len(model.Graph.Outputs) {
				t.Errorf("the package has %d outputs", got)
			}
			for _, x := range []float32{1, -1, 2} {
				inputs := map[string]*array.Array{"x": array.FromFloat32([]float32{x, x, x, x}, 4)}
				if x > 0 {
					runEvaluated(t, p, m, inputs)
					continue
				}
				_, err := m.Run(inputs)
				_, evaluated := evaluate.Program(p, inputs)
				for _, err := range []error{err, evaluated} {
					if err == nil || !strings.Contains(err.Error(), "(If) takes its ") || !strings.Contains(err.Error(), `node "make_negative" (Add, opset 13)`) {
						t.Errorf("error %v, want one of the branch and its node", err)
					}
				}
			}
		})
	}
}

// TestInputWithAValueIsAConstant: a condition that is computed from it selects a branch.
func TestInputWithAValueIsAConstant(t *testing.T) {
	model := func() *onnx.Model {
		m := modeltest.New().Input("x", 4).Input("rate").Known("high", array.FromInt64([]int64{16000})).Node("is = Equal rate high").
			Node("y = If is", branch("then_branch", modeltest.New().Node("same = Neg x"), "same"),
				branch("else_branch", modeltest.New().Constant("c", 7).Node("other = Add x c"), "other")).Output("y")
		m.Graph.Inputs[1].DType = array.Int64
		return m
	}
	p, err := frontend.Import(model(), frontend.Options{Values: map[string]float64{"rate": 16000}, Verify: true})
	if err != nil || len(p.Inputs) != 1 || len(p.Required) != 0 {
		t.Errorf("%+v with error %v, want a program of one input that requires nothing", p, err)
	}
	for want, o := range map[string]frontend.Options{
		`node "make_other" (Add, opset 13)`:          {Values: map[string]float64{"rate": 8000}},
		`no input "rat": the model's inputs are "x`:  {Values: map[string]float64{"rat": 1}},
		`input "x": f32[4] has 4 elements, and only`: {Values: map[string]float64{"x": 1}},
		`input "rate": i64[] cannot be 0.5`:          {Values: map[string]float64{"rate": 0.5}},
		"give it by --set rate=16000":                {Shapes: map[string][]int64{"rate": {16000}}},
	} {
		if _, err := frontend.Import(model(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}
