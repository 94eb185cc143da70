package expr

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// openRows is a softmax without its exponentials: rows of which the first n have the first n of their elements, each
// divided by the sum of its row, and doubled pairs of them.
const openRows = `tilth-workload 1
input t0 f32[4,4]
input t1 i64[]<=4
sum t2 f32[4] over 4 while i0 [t1], r0 [t1] = [t0 i0 r0]
map t3 f32[4,4] while i0 [t1], i1 [t1] = (div [t0 i0 i1] [t2 i0])
output t3
`

func parsed(t testing.TB, text string) *Workload {
	t.Helper()
	w, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestEvaluationStopsAtRuntimeExtents: beyond them sums have no terms, and elements no value.
func TestEvaluationStopsAtRuntimeExtents(t *testing.T) {
	w := parsed(t, openRows)
	if !w.IsOpen() {
		t.Error("the workload has limits")
	}
	x := array.New(array.Float32, 4, 4)
	for k := range x.Len() {
		x.SetFloat(k, float64(k+1))
	}
	if got := w.Counts()[w.Inputs[1]]; got != 4 {
		t.Errorf("the count is at most %d, want 4", got)
	}
	n := array.New(array.Int64)
	n.SetInt(0, 2)
	out, err := Evaluate(w, []*array.Array{x, n})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1.0 / 3, 2.0 / 3, 0, 0, 5.0 / 11, 6.0 / 11}
	for k := range out[0].Len() {
		got := out[0].Float(k)
		if isThere := k%4 < 2 && k/4 < 2; isThere && got != float64(float32(want[k])) || isThere == math.IsNaN(got) {
			t.Errorf("element %d is %v", k, got)
		}
	}
	if got := OutputShapes(w, []*array.Array{x, n}); !slices.Equal(got[0], []int64{2, 2}) || len(got) != 1 {
		t.Errorf("%v elements are computed, want 2 by 2", got)
	}
}

// TestOpenAxesAreJoinedWithThoseBehindThem, and not with those before: their elements would have gaps.
func TestOpenAxesAreJoinedWithThoseBehindThem(t *testing.T) {
	const text = `tilth-workload 1
input t0 f32[2,4,8]
input t1 i64[]<=4
map t2 f32[2,4,8] while i1 [t1] = (neg [t0 i0 i1 i2])
output t2
`
	const want = `tilth-workload 1
input t0 f32[2,32]
input t1 i64[]<=4
map t2 f32[2,32] while i1 (mul [t1] 8) = (neg [t0 i0 i1])
output t2
`
	if got := parsed(t, text).Merge().Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInvalidLimitsAreRefused(t *testing.T) {
	for _, c := range []struct{ limit, says string }{
		{"i0 [t0 0 0]", "not i64"},
		{"i0 i1", "not a variable"},
		{"r0 [t1], r0 [t1]", "two limits"},
		{"x [t1]", "not an axis"},
		{"i0 0x1p+00:f32", "not i64"},
		{"i0 [t1] [t1]", "after"},
		{"i0", "ends early"},
		{"i0 [t9]", "not declared"},
	} {
		text := strings.Replace(openRows, "i0 [t1], r0 [t1]", c.limit, 1)
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("limit %q: %v, want an error that says %q", c.limit, err, c.says)
		}
	}
}

func TestInvalidCountsAreRefused(t *testing.T) {
	for _, count := range []string{"i64[]<=0", "i64[]<=-1", "i64[]<=x", "i32[]<=4", "i64[1]<=4", "i64[]", "i64[]<=99999999999999999999"} {
		if _, err := Parse(strings.Replace(openRows, "i64[]<=4", count, 1)); err == nil {
			t.Errorf("%s is accepted as a count", count)
		}
	}
}

// TestCountsAreAtMostTheirMaxima: a minimum with a larger constant, and a comparison with it, are decided.
func TestCountsAreAtMostTheirMaxima(t *testing.T) {
	rows := MulE(NewCount("n", 4).At(), I(8))
	if e := Simplify(MinE(rows, I(32))); !Same(e, rows) {
		t.Errorf("the rows are %v, want %v", e, rows)
	}
	if e := Simplify(Bin(Lt, I(32), rows)); !Same(e, &Int{Value: 0, Type: array.Bool}) {
		t.Errorf("32 < rows is %v, want false", e)
	}
	if e := Simplify(MinE(rows, I(31))); Same(e, rows) {
		t.Error("the rows are less than 32")
	}
}

// TestWorkIsAveragedOverTheExtentsThatAreTimed: a count with points is printed and parsed with them, and the mean work
// of a workload is that at its points.
func TestWorkIsAveragedOverTheExtentsThatAreTimed(t *testing.T) {
	const text = `tilth-workload 1
input t0 f32[512,8]
input t1 i64[]<=5,23,108,512
map t2 f32[512,8] while i0 [t1] = (add [t0 i0 i1] [t0 i0 i1])
output t2
`
	w, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Text(); got != text {
		t.Errorf("the text became\n%s", got)
	}
	if mean := w.Mean(); mean.Flop != 8*(5+23+108+512)/4 || w.Flop() != 8*512 || mean.Bytes >= w.Bytes() {
		t.Errorf("the mean is %+v of %v operations and %d bytes", mean, w.Flop(), w.Bytes())
	}
	for _, count := range []string{"<=5,23,108", "<=5,600,108,512", "<=0,5,23,108", "<=", "<=0"} {
		if _, err := Parse(strings.Replace(text, "<=5,23,108,512", count, 1)); err == nil {
			t.Errorf("a count %s is parsed", count)
		}
	}
}
