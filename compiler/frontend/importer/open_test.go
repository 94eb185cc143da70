package importer_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// floats returns an input of one axis.
func floats(v ...float32) *array.Array { return array.FromFloat32(v, int64(len(v))) }

func wantShape(t *testing.T, got *array.Array, want ...int64) {
	t.Helper()
	if !slices.Equal(got.Shape, want) {
		t.Fatalf("the shape is %v, want %v", got.Shape, want)
	}
}

func wantInts(t *testing.T, got *array.Array, want ...int64) {
	t.Helper()
	list := []int64{}
	for i := range got.Len() {
		list = append(list, got.Int(i))
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %v%v %v, want %v", got.DType, got.Shape, list, want)
	}
}

func TestResultsHaveAsManyElementsAsAreSelected(t *testing.T) {
	m := modeltest.New().Input("x", 2, 3).Node("found = NonZero x").Node("rows = Transpose found").
		Node("values = GatherND x rows").Node("double = Add values values").Node("shape = Shape double").
		Output("found", "double", "shape")
	for _, c := range []struct {
		x, double []float32
		found     []int64
	}{
		{[]float32{0, 2, 0, 0, 5, 6}, []float32{4, 10, 12}, []int64{0, 1, 1, 1, 1, 2}},
		{[]float32{0, 0, 0, 0, 0, 0}, []float32{}, []int64{}},
		{[]float32{1, 2, 3, 4, 5, float32(math.NaN())}, []float32{2, 4, 6, 8, 10, float32(math.NaN())}, []int64{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}},
	} {
		outs := results(t, m, map[string]*array.Array{"x": array.FromFloat32(c.x, 2, 3)})
		wantShape(t, outs["found"], 2, int64(len(c.double)))
		wantInts(t, outs["found"], c.found...)
		wantFloats(t, outs["double"], c.double...)
		wantInts(t, outs["shape"], int64(len(c.double)))
	}
}

func TestComputedKIsWithinTheAxis(t *testing.T) {
	s := modeltest.New().Input("x", 5).Input("n", 1).Node("k = Cast n", modeltest.Int("to", 7)).Node("values places = TopK x k")
	m := s.Output("values", "places")
	for n, want := range map[float32][]int64{3: {1, 3, 0}, 0: {}, -2: {}, 9: {1, 3, 0, 4, 2}} {
		outs := results(t, m, map[string]*array.Array{"x": floats(3, 9, 1, 7, 2), "n": floats(n)})
		wantInts(t, outs["places"], want...)
		wantShape(t, outs["values"], int64(len(want)))
	}
}

// TestTopKIgnoresElementsBeyondTheCount selects the k best positive elements, possibly fewer than k.
func TestTopKIgnoresElementsBeyondTheCount(t *testing.T) {
	m := modeltest.New().Input("x", 4).Known("zero", array.FromFloat32([]float32{0})).Known("k", array.FromInt64([]int64{3}, 1)).
		Node("above = Greater x zero").Node("left = Compress x above", modeltest.Int("axis", 0)).Node("shifted = Neg left").
		Node("best = TopK shifted k").Node("large = Less best zero").Node("again = Compress best large", modeltest.Int("axis", 0)).
		Output("best", "again")
	m.Graph.Nodes[3].Outputs = []string{"best", "places"}
	for _, c := range []struct{ x, want []float32 }{
		{[]float32{5, -1, 3, -2}, []float32{-3, -5}}, {[]float32{5, 1, 3, 2}, []float32{-1, -2, -3}}, {[]float32{-5, -1, -3, 0}, []float32{}},
	} {
		outs := results(t, m, map[string]*array.Array{"x": floats(c.x...)})
		wantFloats(t, outs["best"], c.want...)
		wantFloats(t, outs["again"], c.want...)
	}
}

func TestUniqueOfData(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		sorted               int64
		x, values            []float32
		first, which, counts []int64
	}{
		{1, []float32{2, 1, 2, 1, 0}, []float32{0, 1, 2}, []int64{4, 1, 0}, []int64{2, 1, 2, 1, 0}, []int64{1, 2, 2}},
		{0, []float32{2, 1, 2, 1, 0}, []float32{2, 1, 0}, []int64{0, 1, 4}, []int64{0, 1, 0, 1, 2}, []int64{2, 2, 1}},
		{1, []float32{nan, 1, nan, 1, 0}, []float32{nan, 0, 1}, []int64{0, 4, 1}, []int64{0, 2, 0, 2, 1}, []int64{2, 1, 2}},
	} {
		m := modeltest.New().Input("x", 5).Node("values first which counts = Unique x", modeltest.Int("sorted", c.sorted)).
			Output("values", "first", "which", "counts")
		outs := results(t, m, map[string]*array.Array{"x": floats(c.x...)})
		wantFloats(t, outs["values"], c.values...)
		wantInts(t, outs["first"], c.first...)
		wantInts(t, outs["which"], c.which...)
		wantInts(t, outs["counts"], c.counts...)
	}
}

// suppression selects boxes by their scores; n is how many of a class.
func suppression() modeltest.Model {
	return modeltest.New().Input("boxes", 1, 4, 4).Input("scores", 1, 2, 4).Input("n", 1).Input("overlap", 1).Input("least", 1).
		Node("most = Cast n", modeltest.Int("to", 7)).Node("rows = NonMaxSuppression boxes scores most overlap least")
}

func TestBoxesAreSuppressed(t *testing.T) {
	m := suppression().Known("two", array.FromInt64([]int64{2}, 1)).Known("axis", array.FromInt64([]int64{1}, 1)).
		Known("zero", array.FromInt64([]int64{0}, 1)).
		Node("column = Gather rows two", modeltest.Int("axis", 1)).Node("at = Squeeze column axis").Node("flat = Squeeze boxes zero").
		Node("chosen = Gather flat at").Output("rows", "chosen")
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	boxes := array.FromFloat32([]float32{0, 0, 1, 1, 0, 0.1, 1, 1.1, 1, 11, 0, 10, 2, 2, 2, 2}, 1, 4, 4)
	for _, c := range []struct {
		scores          []float32
		n, overlap, min float32
		want            []int64
	}{
		{[]float32{0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4}, 4, 0.5, 0, []int64{0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 1, 3, 0, 1, 2, 0, 1, 1}},
		{[]float32{0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4}, 1, 0.5, 0, []int64{0, 0, 0, 0, 1, 3}},
		{[]float32{0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4}, 4, 0.9, 0.65, []int64{0, 0, 0, 0, 0, 1, 0, 0, 2}},
		{[]float32{0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4}, -3, 0.5, 0, []int64{}},
		{[]float32{0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4}, 1000, 0.5, 0.8, []int64{0, 0, 0}},
		{[]float32{nan, inf, inf, inf, nan, nan, 0.3, 0.3}, 4, 0.5, 0, []int64{0, 1, 2, 0, 1, 3}},
	} {
		outs := results(t, m, map[string]*array.Array{
			"boxes": boxes, "scores": array.FromFloat32(c.scores, 1, 2, 4), "n": floats(c.n), "overlap": floats(c.overlap), "least": floats(c.min),
		})
		wantShape(t, outs["rows"], int64(len(c.want)/3), 3)
		wantInts(t, outs["rows"], c.want...)
		wantShape(t, outs["chosen"], int64(len(c.want)/3), 4)
		for k := range len(c.want) / 3 {
			if got, want := outs["chosen"].Float(int64(4*k)), boxes.Float(4*c.want[3*k+2]); got != want {
				t.Errorf("row %d is of a box at %g, want %g", k, got, want)
			}
		}
	}
}

// TestOperatorsOnExtentsThatDependOnData computes with the elements that a NonZero found.
func TestOperatorsOnExtentsThatDependOnData(t *testing.T) {
	axis := modeltest.Int("axis", 1)
	found := func() modeltest.Model {
		return modeltest.New().Input("x", 6).Node("found = NonZero x").Node("f = Cast found", modeltest.Int("to", 1)).
			Known("from", array.FromInt64([]int64{-1}, 1)).Known("to", array.FromInt64([]int64{-9}, 1)).Known("one", array.FromInt64([]int64{1}, 1))
	}
	for name, c := range map[string]struct {
		model *onnx.Model
		want  func(at []float32) []float32
	}{
		"sum": {found().Node("y = ReduceSum f").Output("y"), func(at []float32) []float32 {
			sum := float32(0)
			for _, x := range at {
				sum += x
			}
			return []float32{sum}
		}},
		"joined": {found().Node("y = Concat f f", axis).Output("y"), func(at []float32) []float32 { return slices.Concat(at, at) }},
		"reversed": {found().Node("y = Slice f from to one from").Output("y"), func(at []float32) []float32 {
			at = slices.Clone(at)
			slices.Reverse(at)
			return at
		}},
		"size": {found().Node("n = Size f").Node("y = Cast n", modeltest.Int("to", 1)).Output("y"), func(at []float32) []float32 { return []float32{float32(len(at))} }},
		"found again": {found().Node("g = NonZero f").Node("row = Gather g one").Node("y = Cast row", modeltest.Int("to", 1)).Output("y"), func(at []float32) []float32 {
			var again []float32
			for k, x := range at {
				if x != 0 {
					again = append(again, float32(k))
				}
			}
			return again
		}},
		"numbers from the count on": {found().Known("three", array.FromInt64([]int64{3})).Known("step", array.FromInt64([]int64{1})).Node("n = Size f").
			Node("end = Add n three").Node("r = Range n end step").Node("y = Cast r", modeltest.Int("to", 1)).Output("y"), func(at []float32) []float32 {
			n := float32(len(at))
			return []float32{n, n + 1, n + 2}
		}},
		"unique": {found().Node("y = Unique f").Output("y"), func(at []float32) []float32 { return at }},
		"product": {found().Node("t = Transpose f").Node("y = MatMul f t").Output("y"), func(at []float32) []float32 {
			sum := float32(0)
			for _, x := range at {
				sum += x * x
			}
			return []float32{sum}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, x := range [][]float32{{0, 2, 0, 0, 5, 6}, {1, 1, 1, 1, 1, 1}, {0, 0, 0, 3, 0, 0}, {0, 0, 0, 0, 0, 0}} {
				at := []float32{}
				for k, v := range x {
					if v != 0 {
						at = append(at, float32(k))
					}
				}
				wantFloats(t, results(t, c.model, map[string]*array.Array{"x": floats(x...)})["y"], c.want(at)...)
			}
		})
	}
}

func TestWhereExtentsThatDependOnDataAreRefused(t *testing.T) {
	found := func() modeltest.Model {
		return modeltest.New().Input("x", 6).Node("found = NonZero x").Node("f = Cast found", modeltest.Int("to", 1))
	}
	many := modeltest.New().Input("b", 1, 3000, 4).Input("s", 1, 1, 3000).Known("n", array.FromInt64([]int64{9000}, 1)).Node("y = NonMaxSuppression b s n")
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"known beside it", found().Node("y = Add f x").Output("y"), "need not be equal"},
		{"another", found().Node("g = NonZero f").Known("one", array.FromInt64([]int64{1}, 1)).Node("row = Gather g one").
			Node("h = Cast row", modeltest.Int("to", 1)).Node("y = Mul f h").Output("y"), "need not be equal"},
		{"too many rounds", many.Output("y"), "up to 3000 boxes of a class would be selected, and 2048 are supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := frontend.Import(c.model, frontend.Options{Verify: true}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
