package frontend_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func numbers(v ...int64) *array.Array {
	a := array.New(array.Int64, int64(len(v)))
	for k, e := range v {
		a.SetInt(int64(k), e)
	}
	return a
}

// TestModelsWithUnsupportedOpenExtents checks that errors name the extent and the remedy.
func TestModelsWithUnsupportedOpenExtents(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *onnx.Model
		says  string
	}{
		{
			"a shape that has the number in it", modeltest.New().Input("x", 8, 4).Known("to", numbers(8, 2, 2)).Node("y = Reshape x to").Output("y"),
			"f32[n 4] cannot take shape",
		},
		{
			"an element that small inputs lack", modeltest.New().Input("x", 8, 4).Known("at", numbers(3)).Node("y = Gather x at", modeltest.Int("axis", 0)).Output("y"),
			"index 3 is outside of -1..0",
		},
		{
			"a comparison that decides a shape", modeltest.New().Input("x", 8, 4).Known("limit", numbers(5)).Known("one", numbers(1)).Known("two", numbers(2)).
				Node("shape = Shape x", modeltest.Int("end", 1)).Node("less = Less shape limit").Node("k = Where less one two").Node("y = Expand x k").Output("y"),
			"dynamic shapes",
		},
		{
			"a constant of another extent", modeltest.New().Input("x", 8, 4).Known("c", array.New(array.Float32, 8, 1)).Node("y = Add x c").Output("y"),
			"n and 8 need not be equal",
		},
		{
			"parts of a number that may be too small", modeltest.New().Input("x", 8, 4).Known("lengths", numbers(4, 4)).
				Node("y z = Split x lengths", modeltest.Int("axis", 0)).Output("y", "z"),
			"is outside axis 0 of f32[n 4]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.model.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
			_, err := frontend.Import(c.model, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: 8}}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error that says %q", err, c.says)
			}
		})
	}
}

// TestShapesAreExpressions runs models in which shapes, indices and numbers depend on an open extent in all kinds of
// ways.
func TestShapesAreExpressions(t *testing.T) {
	from := func(rows int64) modeltest.Model {
		return modeltest.New().Opset(18).Input("x", 8, rows).Open("x", 0, "n").Known("zero", numbers(0)).Known("one", numbers(1)).Known("two", numbers(2)).
			Known("five", numbers(5)).Node("s = Shape x", modeltest.Int("end", 1))
	}
	axis := modeltest.Int("axis", 0)
	float := modeltest.Int("to", 1)
	for name, m := range map[string]*onnx.Model{
		"elementwise":        from(4).Node("y = Relu x").Output("y"),
		"product":            from(4).Constant("w", 4, 5).Node("y = MatMul x w").Output("y"),
		"squares":            from(4).Node("t = Transpose x").Node("y = MatMul x t").Node("z = Softmax y").Output("z"),
		"joined axes":        modeltest.New().Opset(18).Input("x", 3, 8, 4).Open("x", 1, "n").Known("to", numbers(-1, 4)).Node("y = Reshape x to").Constant("w", 4, 5).Node("z = MatMul y w").Output("z"),
		"divided axes":       modeltest.New().Opset(18).Input("x", 3, 8, 4).Open("x", 1, "n").Known("to", numbers(3, -1, 2, 2)).Node("y = Reshape x to").Output("y"),
		"halves":             from(4).Node("h = Div s two").Node("a = Slice x zero h zero").Node("b = Slice x h s zero").Node("y = Concat b a", axis).Output("y"),
		"mean":               from(4).Node("y = ReduceMean x zero").Output("y"),
		"cut off":            from(4).Node("y = Slice x zero five zero").Output("y"),
		"bounded":            from(4).Node("n = Min s five").Node("f = Cast n", float).Node("y = Mul x f").Output("y"),
		"remainder":          from(4).Node("n = Mod s five").Node("f = Cast n", float).Node("y = Mul x f").Output("y"),
		"comparison":         from(4).Node("less = Less s five").Node("minus = Neg x").Node("y = Where less minus x").Output("y"),
		"every other":        from(4).Known("end", numbers(1<<40)).Node("y = Slice x zero end zero two").Output("y"),
		"backwards":          from(4).Known("last", numbers(-1)).Known("first", numbers(-1<<40)).Node("y = Slice x last first zero last").Output("y"),
		"repeated":           from(4).Known("times", numbers(3, 1)).Node("y = Tile x times").Output("y"),
		"as often as long":   from(4).Node("times = Concat s one", axis).Node("y = Tile x times").Output("y"),
		"padded":             from(4).Node("pads = Concat zero zero s one", axis).Node("y = Pad x pads").Output("y"),
		"part of a constant": from(4).Constant("c", 8, 4).Node("c1 = Slice c zero s zero").Node("y = Add x c1").Output("y"),
		"end of a constant":  from(4).Constant("c", 8, 4).Known("eight", numbers(8)).Node("b = Sub eight s").Node("c1 = Slice c b eight zero").Node("y = Add x c1").Output("y"),
		"places":             from(4).Known("none", array.FromInt64([]int64{0})).Known("step", array.FromInt64([]int64{1})).Node("n = Squeeze s").Node("r = Range none n step").Node("f = Cast r", float).Node("c = Unsqueeze f one").Node("y = Mul x c").Output("y"),
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.CheckOpen(t, m, map[string]frontend.Bounds{"n": {Min: 1, Max: 8}}, map[string]int64{"n": 1}, map[string]int64{"n": 3}, map[string]int64{"n": 5}, map[string]int64{"n": 8})
		})
	}
}

// TestSeveralOpenExtents checks shapes that depend on more than one extent.
func TestSeveralOpenExtents(t *testing.T) {
	open := map[string]frontend.Bounds{"n": {Min: 1, Max: 8}, "m": {Min: 1, Max: 12}, "k": {Min: 0, Max: 5}}
	var sizes []map[string]int64
	for _, at := range [][3]int64{{1, 1, 0}, {8, 12, 5}, {3, 7, 2}, {5, 1, 5}, {1, 12, 1}} {
		sizes = append(sizes, map[string]int64{"n": at[0], "m": at[1], "k": at[2]})
	}
	inputs := func() modeltest.Model {
		return modeltest.New().Opset(18).Input("x", 8, 12, 4).Open("x", 0, "n").Open("x", 1, "m").Input("p", 5, 12, 4).Open("p", 0, "k").Open("p", 1, "m").
			Known("zero", numbers(0)).Known("one", numbers(1)).Known("rows", numbers(-1, 4)).Known("flat", numbers(-1))
	}
	axis := modeltest.Int("axis", 0)
	for name, m := range map[string]*onnx.Model{
		"one behind the other": inputs().Node("y = Concat p x", axis).Node("z = Softmax y").Output("z"),
		"joined and divided": inputs().Constant("w", 4, 6).Node("r = Reshape x rows").Node("y = MatMul r w").Node("s = Shape x").Known("three", numbers(2, 3)).
			Node("s2 = Slice s zero two").Node("to = Concat s2 three", axis).Known("two", numbers(2)).Node("z = Reshape y to").Node("u = Shape p").Output("z", "u"),
		"everything in a row": inputs().Node("a = Reshape x flat").Node("b = Reshape p flat").Node("y = Concat a b", axis).Output("y"),
		"the lesser": inputs().Node("s = Shape x", modeltest.Int("end", 1)).Node("t = Shape p", modeltest.Int("end", 1)).Node("l = Min s t").
			Node("a = Slice x zero l zero").Node("b = Slice p zero l zero").Node("y = Add a b").Output("y"),
		"axes in another order": inputs().Node("t = Transpose x", modeltest.Ints("perm", 1, 0, 2)).Node("r = Reshape t rows").Node("y = ReduceSum r zero").Output("y"),
	} {
		t.Run(name, func(t *testing.T) { modeltest.CheckOpen(t, m, open, sizes...) })
	}
}

func TestInvalidBoundsAreRefused(t *testing.T) {
	for _, c := range []struct {
		bounds frontend.Bounds
		says   string
	}{
		{frontend.Bounds{Min: 1, Max: 1 << 40}, "laid out for the most"},
		{frontend.Bounds{Min: -1, Max: 8}, "must be >= 0"},
		{frontend.Bounds{Min: 0, Max: 8, Caps: []int64{0}}, "not within 1..8"},
		{frontend.Bounds{Min: 8, Max: 8}, "the second one larger"},
		{frontend.Bounds{Min: 1, Max: 8, Caps: []int64{9}}, "not within 1..8"},
		{frontend.Bounds{Min: 1, Max: 8, Frequencies: map[int64]float64{9: 1}}, "not within 1..8"},
	} {
		m := modeltest.New().Input("x", 8, 2).Node("y = Relu x").Output("y")
		m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
		_, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": c.bounds}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an error that says %q", c.bounds, err, c.says)
		}
	}
}

// behind has n rows x, preceded by m rows p, where m may be zero.
func behind() modeltest.Model {
	m := modeltest.New().Opset(14).Input("x", 40, 2).Input("p", 12, 2).Known("zero", numbers(0)).Known("one", numbers(1)).Known("end", numbers(1<<40)).
		Node("past = Shape p", modeltest.Int("end", 1))
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	m.Graph.Inputs[1].Shape[0] = onnx.Dim{Value: -1, Param: "m"}
	return m
}

func importBehind(m *onnx.Model, floor int64) error {
	_, err := frontend.Import(m, frontend.Options{Verify: true, Open: map[string]frontend.Bounds{"n": {Min: floor, Max: 40}, "m": {Min: 0, Max: 12}}})
	return err
}

// TestExtentsFromZeroOn checks numbers that an extent of zero changes.
func TestExtentsFromZeroOn(t *testing.T) {
	for name, m := range map[string]modeltest.Model{
		"a number from 1 on":     behind().Node("s = Max past one").Node("f = Cast s", modeltest.Int("to", 1)).Node("y = Mul x f"),
		"a comparison with none": behind().Node("s = Equal past zero").Node("minus = Neg x").Node("y = Where s x minus"),
		"what is left":           behind().Node("y = Slice x past end zero"),
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.CheckOpen(t, m.Node("z = Concat p y", modeltest.Int("axis", 0)).Output("z"), map[string]frontend.Bounds{"n": {Min: 13, Max: 40}, "m": {Min: 0, Max: 12}},
				map[string]int64{"n": 13, "m": 0}, map[string]int64{"n": 40, "m": 12}, map[string]int64{"n": 20, "m": 1})
		})
	}
}

// TestBothExtentsMayBeZero checks an output that depends on both.
func TestBothExtentsMayBeZero(t *testing.T) {
	if err := importBehind(behind().Node("y = Relu x").Node("z = Concat p y", modeltest.Int("axis", 0)).Output("z"), 0); err != nil {
		t.Error(err)
	}
}

// TestExtentsGivenByOthers checks steps, axes without names, and expressions of other extents.
func TestExtentsGivenByOthers(t *testing.T) {
	m := modeltest.New().Opset(18).Input("x", 1, 64).Input("mask", 1, 16).Input("w", 1, 1).
		Known("four", numbers(4)).Known("pads", numbers(0, 0, 0, 3)).
		Node("s = Pad x pads").Node("t = Relu mask").Node("y = Add x w").Output("s", "t", "y")
	for _, in := range m.Graph.Inputs {
		for axis := range in.Shape {
			in.Shape[axis] = onnx.Dim{Value: -1}
		}
	}
	m.Graph.Inputs[1].Shape[0].Param, m.Graph.Inputs[1].Shape[1].Param = "masks", "mask_length"
	general, err := frontend.Import(m, frontend.Options{
		Verify:  true,
		Shapes:  map[string][]int64{"w.0": {1}},
		Open:    map[string]frontend.Bounds{"x.0": {Min: 1, Max: 3}, "x.1": {Min: 8, Max: 64, Step: 4, Caps: []int64{32}}},
		Derived: map[string]string{"masks": "x.0", "mask_length": "quarter + 2", "quarter": "w.1/4", "w.1": "x.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := general.Extents[1]; e.Min != 2 || e.Max != 16 || e.Step != 4 || len(e.Caps) != 1 || e.Caps[0] != 8 {
		t.Errorf("the extent is %+v", e)
	}
	for _, size := range [][2]int64{{1, 8}, {2, 12}, {3, 32}, {2, 36}, {3, 64}} {
		in := map[string]*array.Array{"x": modeltest.Wave(1, 1, size[0], size[1]), "mask": modeltest.Wave(2, 1, size[0], size[1]/4+2), "w": modeltest.Wave(3, 1, 1, size[1])}
		fixed, err := frontend.Import(m, frontend.Options{Shapes: map[string][]int64{"x": in["x"].Shape, "mask": in["mask"].Shape, "w": in["w"].Shape}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := evaluate.Program(fixed, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := evaluate.Program(general, in)
		if err != nil {
			t.Fatalf("%v: %v", size, err)
		}
		for name := range want {
			if err := modeltest.Compare(got[name], want[name]); err != nil {
				t.Errorf("%v: %s: %v", size, name, err)
			}
		}
	}
	for _, c := range []struct {
		x, mask []int64
		says    string
	}{
		{[]int64{1, 10}, []int64{1, 4}, `input "x" has 10 elements on axis 1, which none of x.1 in 8..64, in steps of 4, has`},
		{[]int64{1, 12}, []int64{1, 4}, `input "mask" has 4 elements on axis 1, but 5 according to other inputs`},
		{[]int64{4, 12}, []int64{4, 5}, `input "x" has 4 elements on axis 0, which none of x.0 in 1..3 has`},
	} {
		in := map[string]*array.Array{"x": array.New(array.Float32, c.x...), "mask": array.New(array.Float32, c.mask...), "w": array.New(array.Float32, 1, c.x[1])}
		if _, err := evaluate.Program(general, in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want an error that says %q", err, c.says)
		}
	}
}

func TestInvalidExtentsAreRefused(t *testing.T) {
	n, m := frontend.Bounds{Min: 1, Max: 8}, frontend.Bounds{Min: 2, Max: 12, Step: 2}
	both := map[string]frontend.Bounds{"n": n, "m": m}
	for _, c := range []struct {
		node string
		o    frontend.Options
		says string
	}{
		{"y = Add x p", frontend.Options{Open: both}, "n and m need not be equal; if they are, say so, as in --shape m=n"},
		{"y = Concat x p", frontend.Options{Open: both}, "n and m need not be equal; if they are, say so, as in --shape m=n"},
		{"y = Relu x", frontend.Options{Open: both, Derived: map[string]string{"m": "n"}}, "m is open and derived at once"},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": n}, Derived: map[string]string{"m": "n - 1"}}, ""},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": n}, Derived: map[string]string{"m": "n - 2"}}, "m=n - 2: it may be -1"},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": n}, Derived: map[string]string{"m": "n/2"}}, `axis 0 of input "p" has n/2 elements, which is no sum of open extents: give`},
		{"y = Relu x", frontend.Options{Derived: map[string]string{"m": "n"}}, `"n" is open: give it a number or bounds`},
		{"y = Relu x", frontend.Options{Derived: map[string]string{"m": "n", "n": "m"}}, `depends on itself`},
		{"y = Relu x", frontend.Options{Derived: map[string]string{"p": "n"}}, `"p" is an input and cannot be n: give the extent of an axis, such as p.0=n`},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": n}, Derived: map[string]string{"m": "k"}}, `"k" is open`},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": n}, Derived: map[string]string{"q": "n"}}, `no input or open extent "q"`},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"a": n, "b": n}, Derived: map[string]string{"n": "a+b", "m": "b+a"}}, "no input determines a"},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: 8, Step: 4}}}, "must be multiples of the step"},
		{"y = Relu x", frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 4, Max: 8, Step: 4, Caps: []int64{6}}}}, "6, which is no multiple of 4"},
	} {
		model := modeltest.New().Input("x", 8, 1).Open("x", 0, "n").Input("p", 12, 1).Open("p", 0, "m").Node(c.node, modeltest.Int("axis", 1)).Output("y")
		_, err := frontend.Import(model, c.o)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s with %+v: %v, want an error that says %q", c.node, c.o, err, c.says)
		}
	}
}
