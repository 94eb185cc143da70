package frontend_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// bodyOf returns the attribute for a graph with inputs of unknown types.
func bodyOf(m modeltest.Model, inputs []string, outputs ...string) *onnx.Attribute {
	for _, name := range inputs {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name})
	}
	return &onnx.Attribute{Name: "body", Type: onnx.AttrGraph, Graph: m.Output(outputs...).Graph}
}

func direction(name string) *onnx.Attribute {
	return &onnx.Attribute{Name: "direction", Type: onnx.AttrString, String: name}
}

// loops returns models with loops of n steps, given as "9" or, if they are open, as "n".
func loops(n string) map[string]*onnx.Model {
	recurrent := func() modeltest.Model {
		return openIn(18, "x "+n+" 2 3", "h 1 2 4", "c 1 2 4", "h2 2 2 4").
			Constant("w4", 1, 16, 3).Constant("r4", 1, 16, 4).Constant("b4", 1, 32).Constant("w3", 1, 12, 3).Constant("r3", 1, 12, 4).
			Constant("b3", 1, 24).Constant("w1", 2, 4, 3).Constant("r1", 2, 4, 4).Constant("w8", 2, 16, 3).Constant("r8", 2, 16, 4).
			Known("lengths", array.FromInt64([]int64{3, 6}, 2).As(array.Int32))
	}
	scan := []string{"sum", "row"}
	turn := []string{"i", "go", "state"}
	return map[string]*onnx.Model{
		"LSTM":               recurrent().Node("y yh yc = LSTM x w4 r4 b4").Output("y", "yh", "yc"),
		"LSTM with states":   recurrent().Node("y yh yc = LSTM x w4 r4 b4 _ h c").Output("y", "yh", "yc"),
		"last state of LSTM": recurrent().Node("_ yh = LSTM x w4 r4 b4").Output("yh"),
		"LSTM backwards":     recurrent().Node("y yh = LSTM x w4 r4 b4", direction("reverse")).Output("y", "yh"),
		"LSTM both ways":     recurrent().Node("y yh = LSTM x w8 r8 _ _ h2", direction("bidirectional")).Output("y", "yh"),
		"LSTM of lengths":    recurrent().Node("y yh = LSTM x w4 r4 b4 lengths").Output("y", "yh"),
		"LSTM both ways over x and every other step": recurrent().Known("zero", array.FromInt64([]int64{0})).Known("end", array.FromInt64([]int64{99})).Known("two", array.FromInt64([]int64{2})).
			Node("half = Slice x zero end zero two").Node("more = Concat half x", modeltest.Int("axis", 0)).Node("y yh = LSTM more w8 r8 _ _ h2", direction("bidirectional")).Output("y", "yh"),
		"GRU":              recurrent().Node("y yh = GRU x w3 r3 b3").Output("y", "yh"),
		"GRU, reset after": recurrent().Node("y yh = GRU x w3 r3 b3 _ h", modeltest.Int("linear_before_reset", 1)).Output("y", "yh"),
		"RNN both ways":    recurrent().Node("y yh = RNN x w1 r1", direction("bidirectional")).Output("y", "yh"),
		"two layers":       recurrent().Node("y = LSTM x w4 r4").Node("s = Squeeze y", modeltest.Ints("axes", 1)).Constant("w5", 1, 12, 4).Node("z = GRU s w5 r3").Output("z"),
		"Scan": openIn(18, "x "+n+" 2", "s 2").Node("y all = Scan s x", modeltest.Int("num_scan_inputs", 1),
			bodyOf(modeltest.New().Node("more = Add sum row").Node("shown = Mul more row"), scan, "more", "shown")).Output("y", "all"),
		"Scan backwards along axis 1": openIn(18, "x 3 "+n, "s 3").Node("y all = Scan s x", modeltest.Int("num_scan_inputs", 1),
			modeltest.Ints("scan_input_axes", 1), modeltest.Ints("scan_output_axes", 1), modeltest.Ints("scan_input_directions", 1), modeltest.Ints("scan_output_directions", 1),
			bodyOf(modeltest.New().Node("more = Sub sum row").Node("shown = Add more row"), scan, "more", "shown")).Output("y", "all"),
		"Scan that shows its state": openIn(18, "x "+n+" 2", "s 2").Node("y all = Scan s x", modeltest.Int("num_scan_inputs", 1),
			bodyOf(modeltest.New().Node("more = Add sum row").Node("shown = Identity sum"), scan, "more", "shown")).Output("y", "all"),
		"Scan of two states that change places": openIn(18, "x "+n+" 2", "s 2", "r 2").Node("y z = Scan s r x", modeltest.Int("num_scan_inputs", 1),
			bodyOf(modeltest.New().Node("more = Add a row").Node("other = Identity b"), []string{"a", "b", "row"}, "other", "more")).Output("y", "z"),
		"Scan of images": openIn(18, "x "+n+" 1 2 4 4", "s 1 2 4 4").Constant("w", 2, 2, 3, 3).Node("y all = Scan s x", modeltest.Int("num_scan_inputs", 1),
			bodyOf(modeltest.New().Node("c = Conv sum w", modeltest.Ints("pads", 1, 1, 1, 1)).Node("more = Add c row").Node("shown = Relu more"), scan, "more", "shown")).Output("y", "all"),
		"Scan in a Scan": openIn(18, "x "+n+" 2", "s 2").Node("y all = Scan s x", modeltest.Int("num_scan_inputs", 1),
			bodyOf(modeltest.New().Node("inner each = Scan sum x", modeltest.Int("num_scan_inputs", 1),
				bodyOf(modeltest.New().Node("m = Add a e").Node("k = Mul m row"), []string{"a", "e"}, "m", "k")).
				Node("part = ReduceSum each", modeltest.Int("keepdims", 0)).Node("more = Sub inner part"), scan, "more", "inner")).Output("y", "all"),
		"Loop": openIn(18, "x "+n+" 2", "s 2").Node("shape = Shape x").Known("zero", array.FromInt64([]int64{0})).Node("trips = Gather shape zero").
			Node("y all = Loop trips _ s", bodyOf(modeltest.New().Node("on = Identity go").Node("f = Cast i", modeltest.Int("to", 1)).
				Node("more = Add state f").Node("shown = Sin more"), turn, "on", "more", "shown")).Output("y", "all"),
		"Loop while a sum is small": openIn(18, "x "+n+" 2", "s 2").Known("most", array.FromFloat32([]float32{5})).Known("one", array.FromFloat32([]float32{1})).
			Node("shape = Shape x").Known("zero", array.FromInt64([]int64{0})).Node("trips = Gather shape zero").
			Node("y = Loop trips _ s", bodyOf(modeltest.New().Node("more = Add state one").Node("sum = ReduceSum more", modeltest.Int("keepdims", 0)).
				Node("on = Less sum most"), turn, "on", "more")).Output("y"),
	}
}

// TestLoopsAreTheSameAsUnrolled compares loops of 9 steps with their steps one by one.
func TestLoopsAreTheSameAsUnrolled(t *testing.T) {
	for name, m := range loops("9") {
		if name == "Loop while a sum is small" {
			continue // it cannot be unrolled
		}
		t.Run(name, func(t *testing.T) {
			looped, err := frontend.Import(m, frontend.Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			unrolled, err := frontend.Import(m, frontend.Options{Verify: true, Storage: array.Storage{Unrolled: true}})
			if err != nil {
				t.Fatal(err)
			}
			if len(looped.Loops) == 0 || len(unrolled.Loops) != 0 {
				t.Errorf("%d loops, and %d in an unrolled program", len(looped.Loops), len(unrolled.Loops))
			}
			modeltest.CheckSame(t, name, looped, unrolled)
		})
	}
}

func TestLoopsOfOpenCounts(t *testing.T) {
	for name, m := range loops("n") {
		t.Run(name, func(t *testing.T) {
			modeltest.CheckOpen(t, m, openOf(m), map[string]int64{"n": 1}, map[string]int64{"n": 2}, map[string]int64{"n": 6}, map[string]int64{"n": 8})
		})
	}
}

// TestLoopsThatAreRefused names the node and the cause.
func TestLoopsThatAreRefused(t *testing.T) {
	turn := []string{"i", "go", "state"}
	grow := func(n string) *onnx.Model {
		return openIn(18, "x "+n+" 2", "s 1 2").Node("shape = Shape x").Known("zero", array.FromInt64([]int64{0})).Node("trips = Gather shape zero").
			Node("y = Loop trips _ s", bodyOf(modeltest.New().Node("on = Identity go").Node("more = Concat state s", modeltest.Int("axis", 0)), turn, "on", "more")).Output("y")
	}
	if _, err := frontend.Import(grow("6"), frontend.Options{Verify: true}); err != nil {
		t.Errorf("a known number of steps: %v", err)
	}
	lstm := openIn(18, "x n 2 3").Constant("w", 1, 16, 3).Constant("r", 1, 16, 4).Node("y = LSTM x w r").Output("y")
	for want, c := range map[string]struct {
		model   *onnx.Model
		storage array.Storage
	}{
		`node "make_y" (Loop, opset 18): a loop of n iterations: state 0 changes from f32[1 2] to f32[2 2]`:          {model: grow("n")},
		`node "make_y" (LSTM, opset 18): a number of iterations that is known in an execution only is not supported`: {lstm, array.Storage{Unrolled: true}},
	} {
		if _, err := frontend.Import(c.model, frontend.Options{Open: openOf(c.model), Storage: c.storage}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
