package aot

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestPackagesRunLoops has a recurrent layer over an open number of steps, whose sums a second loop adds up while they
// are small, and one that goes backwards over every other step.
func TestPackagesRunLoops(t *testing.T) {
	body := modeltest.New().Node("more = Add state sums").Node("size = ReduceMax more", modeltest.Int("keepdims", 0)).Node("on = Less size most")
	for _, name := range []string{"i", "go", "state"} {
		body.Graph.Inputs = append(body.Graph.Inputs, &onnx.ValueInfo{Name: name})
	}
	m := modeltest.New().Opset(18).Input("x", 20, 2, 3).Open("x", 0, "steps").Constant("w", 1, 16, 3).Constant("r", 1, 16, 4).
		Known("most", array.FromFloat32([]float32{3})).Known("axes", array.FromInt64([]int64{0, 1}, 2)).
		Known("zero", array.FromInt64([]int64{0}, 1)).Known("end", array.FromInt64([]int64{99}, 1)).Known("two", array.FromInt64([]int64{2}, 1)).
		Node("every = Slice x zero end zero two").
		Node("back = LSTM every w r", &onnx.Attribute{Name: "direction", Type: onnx.AttrString, String: "reverse"}).
		Node("y = LSTM x w r").Node("sums = ReduceSum y axes", modeltest.Int("keepdims", 0)).
		Node("z = Loop _ _ sums", &onnx.Attribute{Name: "body", Type: onnx.AttrGraph, Graph: body.Output("on", "more").Graph}).Output("y", "z", "back")
	p, err := frontend.Import(m, frontend.Options{Verify: true, Open: map[string]frontend.Bounds{"steps": {Min: 1, Max: 20}}})
	if err != nil {
		t.Fatal(err)
	}
	model := opened(t, plain(t, p).Output)
	for _, steps := range []int64{20, 1, 7, 2} {
		runEvaluated(t, p, model, map[string]*array.Array{"x": modeltest.Wave(1, 1, steps, 2, 3)})
	}
	seconds, err := model.Profile()
	if err != nil {
		t.Fatal(err)
	}
	for k, c := range p.Calls {
		if seconds[k] < 0 {
			t.Errorf("call %q took no time", c.Name)
		}
	}
}

// TestOperationsOfLoopsAreThoseOfAllSteps: a product in a loop is counted once for each step, and one in a loop of
// computed length is unknown.
func TestOperationsOfLoopsAreThoseOfAllSteps(t *testing.T) {
	m := Manifest{Tasks: []TaskInfo{{Flop: 10, Bytes: 100}}, Calls: []CallInfo{{}, {Repeats: "(steps - 1)"}, {Repeats: "(3)*(steps)"}, {Repeats: "?"}}}
	for k, want := range []float64{10, 40, 150, 0} {
		if task := m.Executed(map[string]int64{"steps": 5})[k]; task.Flop != want || task.Bytes != int64(10*want) {
			t.Errorf("call %d: %g operations on %d bytes, want %g on %g", k, task.Flop, task.Bytes, want, 10*want)
		}
	}
}

// TestStatesOfZerosAreNotMultiplied: the first step of a recurrent layer begins with zeros, unless a state is given.
// A product of open rows, whose second input is their number, is no such sum.
func TestStatesOfZerosAreNotMultiplied(t *testing.T) {
	for _, given := range []bool{false, true} {
		m := modeltest.New().Input("x", 20, 1, 3).Open("x", 0, "steps").Constant("w", 1, 16, 3).Constant("r", 1, 16, 4)
		if m.Input("h", 1, 1, 4); given {
			m.Node("y = LSTM x w r _ _ h")
		} else {
			m.Node("y = LSTM x w r")
		}
		m.Input("rows", 8, 3).Open("rows", 0, "batch").Constant("v", 3, 4).Node("product = MatMul rows v").Node("z = Relu product")
		p, err := frontend.Import(m.Output("y", "z"), frontend.Options{Open: map[string]frontend.Bounds{"steps": {Min: 1, Max: 20}, "batch": {Min: 1, Max: 8}}})
		if err != nil {
			t.Fatal(err)
		}
		plan := newLayout(p, make([]backend.Info, len(p.Tasks)), 1, onProcessors).runFunction()
		if begins := strings.Contains(plan, "if (!i0) move_bytes("); begins == given {
			t.Errorf("given a state %v, the first step multiplies it %v:\n%s", given, !begins, plan)
		}
	}
}
