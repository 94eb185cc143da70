package main

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestRecordBeyondItsMachineIsRefused checks records whose samples agree with an impossible latency. The second
// record of a workload has no text, as in exports.
func TestRecordBeyondItsMachineIsRefused(t *testing.T) {
	x, k := expr.NewInput("x", array.Float32, 512, 512), expr.NewConstant("k", array.Float32, 512, 512)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("y", expr.Sum, []int64{512, 512}, []int64{512}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], r[0]), k.At(r[0], i[1]))
	})})
	if err != nil {
		t.Fatal(err)
	}
	check := &rateCheck{known: []farm.KnownRates{{Machine: "board-4t", CPU: true, Rates: roofline.Rates{
		FlopPerSecond: 1e11, Stores: []roofline.Store{{Name: "L2", Bytes: 1 << 20, BytesPerSecond: 1e11}},
	}}}}
	limit := w.Flop() / 1e11 / 8
	first := storetest.Record("board-4t-clang-19-1234", "gemm", 1, limit/2)
	first.Workload, first.WorkloadDigest = []byte(w.Text()), w.Digest()
	first.Measurement.Candidate.Numerics = "strict"
	second := proto.CloneOf(first)
	second.Workload = nil
	for _, r := range []*tilthv1.Record{first, second} {
		err := check.check(r)
		if err == nil || !errors.Is(err, records.ErrInvalid) || !strings.Contains(err.Error(), w.Digest()[:12]) || !strings.Contains(err.Error(), "at least") {
			t.Errorf("a record twice as fast as the limit: %v", err)
		}
		r.Measurement.LatencySeconds = 2 * limit
		if err := check.check(r); err != nil {
			t.Errorf("a record within the limit: %v", err)
		}
		r.Target, r.Measurement.LatencySeconds = "other-4t-clang-19-1234", limit/2
		if err := check.check(r); err != nil {
			t.Errorf("a record of an unknown machine: %v", err)
		}
	}
}
