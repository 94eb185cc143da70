package kerneltest

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Replayed returns the program of a workload and a trace, both given as text.
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

// Unrolled is like Replayed, with loops unrolled for vectors of 32 bytes.
func Unrolled(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Unroll(Replayed(t, workload, trace), func(d array.DType) int64 { return 32 / d.Bytes() })
	if err != nil {
		t.Fatal(err)
	}
	return f
}
