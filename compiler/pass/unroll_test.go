package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func unrollLanes(array.DType) int64 { return 8 }

// TestUnrolledCopiesKeepRanges: a loop that has a part of its values has it in each copy, with what is named around
// it.
func TestUnrolledCopiesKeepRanges(t *testing.T) {
	v, k := &expr.Var{Name: "v", Extent: 2}, &expr.Var{Name: "k", Extent: 8}
	named := &expr.Var{Name: "named", Extent: 3}
	out := &ir.Buffer{Tensor: ir.Flat("out", array.Float32, 8), Space: ir.Argument}
	loop := &ir.For{Var: k, Extent: 8, Kind: ir.Serial, Range: &ir.Range{First: named, End: expr.I(7), Every: 2},
		Body: ir.Block{&ir.Store{Buffer: out, Index: k, Value: expr.F(array.Float32, 1)}}}
	copies := ir.Block{&ir.Let{Var: named, Value: expr.AddE(v, expr.I(1))}, loop}
	f, err := pass.Unroll(&ir.Func{Args: []*ir.Buffer{out}, Body: ir.Block{&ir.For{Var: v, Extent: 2, Kind: ir.Unrolled, Body: copies}}}, unrollLanes)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"from 1 before 7 by 2", "from 2 before 7 by 2"} {
		if !strings.Contains(f.Text(), want) {
			t.Errorf("no loop %s in\n%s", want, f.Text())
		}
	}
}

func TestUnrollRefusesTooManyStatements(t *testing.T) {
	s := schedule.New(kerneltest.Product(t, ir.MaxStatements, 2, 2))
	if err := s.Unroll(0, s.Stages[0].Leaves[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := pass.Unroll(kerneltest.Lower(t, s), unrollLanes); err == nil || !strings.Contains(err.Error(), "statements") {
		t.Errorf("%v", err)
	}
}

// unrolled returns the program of a workload and a trace, with loops unrolled for vectors of 32 bytes.
func unrolled(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Unroll(kerneltest.Replayed(t, workload, trace), func(d array.DType) int64 { return 32 / d.Bytes() })
	if err != nil {
		t.Fatal(err)
	}
	return f
}
