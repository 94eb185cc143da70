package runner

import (
	"os"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/vta"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// TestSimulatedSecondsCount: the harness of a simulated accelerator has its clock, and candidates call the simulator.
func TestSimulatedSecondsCount(t *testing.T) {
	const rows, terms, columns = 256, 512, 64
	a, b := expr.NewInput("a", array.Uint8, rows, terms), expr.NewConstant("b", array.Int8, terms, columns)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("c", expr.Sum, []int64{rows, columns}, []int64{terms}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(array.Int32, a.At(i[0], r[0])), expr.To(array.Int32, b.At(r[0], i[1])))
	})})
	if err != nil {
		t.Fatal(err)
	}
	by := vta.Backend{}
	on, err := by.Target("vta-sim", 1)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	build := builds(t, tc)
	space := by.Space(w, on, schedule.Default)
	s, err := space.Apply(space.Default())
	if err != nil {
		t.Fatal(err)
	}
	printed, err := by.Print("k", backend.Kernel{ID: schedule.Digest(s.Trace()), Schedule: s}, on)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Threads: 1, Seed: 1, Limits: Limits{Budget: time.Millisecond}, Harness: build(by.Harness(on), nil, "harness")}
	reference, err := by.Reference(w, on)
	plan.Reference = build(reference, err, "reference.so")
	module, err := by.Module(w, []backend.Printed{printed}, on)
	plan.Candidates = []string{build(module, err, "module.so")}
	// A step of the matrix unit multiplies 16 by 16 in a cycle.
	least := rows * terms * columns / (16 * 16) / by.Clock(on)
	for _, o := range measureAll(t, plan) {
		if len(o.Samples) == 0 || o.Samples[0] < least {
			t.Errorf("%v seconds, at least %v: %s", o.Samples, least, o.Message)
		}
	}
}
