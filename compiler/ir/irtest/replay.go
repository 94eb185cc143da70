package irtest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Replayed is the program of a workload's text by a trace's.
func Replayed(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\n" + workload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
	if err != nil {
		t.Fatal(err)
	}
	return Lower(t, s)
}

// Unrolled is the program of a workload's text by a trace's, with its loops written out for vectors of 32 bytes.
func Unrolled(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Unroll(Replayed(t, workload, trace), func(d array.DType) int64 { return 32 / d.Bytes() })
	if err != nil {
		t.Fatal(err)
	}
	return f
}
