package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// checkTraces replays traces on the test workload, of which each is refused with a reason, or legal where that is
// empty: then legal looks at the schedule.
func checkTraces(t *testing.T, reasons map[string]string, legal func(s *Schedule)) {
	t.Helper()
	for trace, want := range reasons {
		s, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+trace+"\n"))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", trace, err)
		case want == "":
			legal(s)
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
}

func TestExtendIsForSumsOfProducts(t *testing.T) {
	checkTraces(t, map[string]string{
		"extend 1 0":                     "extend: 0 is not a multiple, or more than 1024",
		"extend 1 2000":                  "extend: 2000 is not a multiple, or more than 1024",
		"extend 0 4":                     "extend: stage 0 is not a sum of products of two tensors",
		"extend 3 4":                     "extend: stage 3 is not a sum of products of two tensors",
		"unroll 1 0\nextend 1 4":         "extend: stage 1 was already scheduled",
		"pack 0 0 0 0 1 0 0\nextend 1 4": "extend: constant 0 is already packed or transformed",
		"extend 1 4":                     "",
	}, func(s *Schedule) {
		if g := s.Stages[product]; g.Reduce[0].Extent != 12 || len(s.Stages) != 5 {
			t.Errorf("there are %d terms and %d stages, want 12 and 5", g.Reduce[0].Extent, len(s.Stages))
		}
	})
}

// TestExtendGivesWindowsOfIntegersMoreColumns: weights of zero, and elements as they come beside the window, behind
// the last of which are zeros. A sum in floats is refused: what comes may be no number.
func TestExtendGivesWindowsOfIntegersMoreColumns(t *testing.T) {
	const rows = `tilth-workload 1
input t0 u8[21,5]
constant t1 i8[3,5]
sum t2 i32[9,5] over 3 = (mul (cast i32 [t0 (add (mul i0 2) (mul r0 2)) i1]) (cast i32 [t1 r0 i1]))
output t2
`
	const floats = `tilth-workload 1
input t0 f32[21,5]
constant t1 f32[3,5]
sum t2 f32[9,5] over 3 = (mul [t0 (add (mul i0 2) (mul r0 2)) i1] [t1 r0 i1])
output t2
`
	extended := func(text string) (*Schedule, error) {
		w, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return Replay(w, []byte("tilth-trace 1\nextend 0 4\n"))
	}
	s, err := extended(rows)
	if err != nil {
		t.Fatal(err)
	}
	if g := s.Stages[0]; g.Reduce[0].Extent != 4 || s.Stages[1].Tensor.Shape[0] != 23 || s.Transforms[0].Result.Shape[0] != 4 {
		t.Errorf("there are %d terms of %v by %v", g.Reduce[0].Extent, s.Stages[1].Tensor.Shape, s.Transforms[0].Result.Shape)
	}
	if _, err := extended(floats); err == nil || !strings.Contains(err.Error(), "not an index of both operands") {
		t.Errorf("a sum in floats: %v", err)
	}
	if _, err := extended(strings.Replace(rows, "(mul r0 2)) i1", "(floordiv r0 2)) i1", 1)); err == nil || !strings.Contains(err.Error(), "not an index of both operands") {
		t.Errorf("columns that are no line: %v", err)
	}
}
