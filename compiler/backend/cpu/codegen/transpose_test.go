package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// transposing returns a case that transposes a matrix, a square of lanes at a time. Neither extent is a multiple of
// lanes.
func transposing(t *testing.T, d array.DType, lanes int64) kerneltest.Case {
	x := expr.NewInput("x", d, 37, 45)
	y := expr.Compute("y", []int64{45, 37}, func(i []expr.Expr) expr.Expr { return x.At(i[1], i[0]) })
	w, err := expr.NewWorkload([]*expr.Tensor{y})
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	squares, row, err := s.Split(0, 0, lanes, schedule.Peel)
	if err != nil {
		t.Fatal(err)
	}
	vectors, lane, err := s.Split(0, 1, lanes, schedule.Peel)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.Reorder(0, squares, vectors, row, lane), s.Unroll(0, row), s.Vectorize(0, lane)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return kerneltest.Case{Workload: w, Schedule: s, Workers: 1, Args: kerneltest.Fill(w, 1)}
}

func TestSquaresAreTransposedInRegisters(t *testing.T) {
	for _, m := range quick(modes, "avx512", "neon") {
		t.Run(m.name, func(t *testing.T) {
			var cases []kerneltest.Case
			for _, d := range []array.DType{array.Float32, array.Float64, array.Int32} {
				cases = append(cases, transposing(t, d, NewUnit(m.description(t)).config.Lanes(d)))
			}
			checkCases(t, t, m, cases)
		})
	}
}
