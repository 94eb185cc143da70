package gpusim

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestOnlyFastNumericsStoreFactorsInHalfTheBytes checks that other levels leave a model unchanged.
func TestOnlyFastNumericsStoreFactorsInHalfTheBytes(t *testing.T) {
	for n, want := range map[schedule.Numerics]array.DType{schedule.Strict: array.Invalid, schedule.Default: array.Invalid, schedule.Fast: array.BFloat16} {
		if got := (Backend{}).Storage(played(t), n, array.Invalid).Type; got != want {
			t.Errorf("%v: %v, want %v", n, got, want)
		}
	}
}

// TestHalfWidthWeightsCostLess checks that the analytic cost of a product bound by its weights reflects their size,
// and that the product reads them directly.
func TestHalfWidthWeightsCostLess(t *testing.T) {
	on := played(t)
	m := modeltest.New().Input("x", 32, 2048).Node("r = Erf x").Constant("w", 2048, 2048).Node("y = MatMul r w").Output("y")
	tasks := map[array.DType]program.Task{}
	costs := map[array.DType]float64{}
	for _, d := range []array.DType{array.Invalid, array.BFloat16} {
		p, err := frontend.Import(m, frontend.Options{Storage: array.Storage{Type: d}})
		if err != nil {
			t.Fatal(err)
		}
		tasks[d] = p.Tasks[len(p.Tasks)-1]
		s := Backend{}.Space(tasks[d].Workload, on, schedule.Fast)
		costs[d] = s.Cost(s.Default())
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		if d == array.BFloat16 && (s.Algorithm(s.Default()) == searchspace.Direct || made.Numerics() != schedule.Strict) {
			t.Errorf("the default schedule computes by %v, which needs %v numerics", made.Algorithms(), made.Numerics())
		}
	}
	if once, half := tasks[array.Invalid].Workload, tasks[array.BFloat16].Workload; 2*half.Bytes() > once.Bytes()*21/20 || once.Digest() == half.Digest() {
		t.Errorf("the workload takes %d bytes, in float32 %d", half.Bytes(), once.Bytes())
	}
	if costs[array.BFloat16] > 0.9*costs[array.Invalid] {
		t.Errorf("the default schedule costs %g, in float32 %g", costs[array.BFloat16], costs[array.Invalid])
	}
}

// TestZeroOutputFailsVerification checks that comparing outputs of these tasks detects missing results.
func TestZeroOutputFailsVerification(t *testing.T) {
	for _, w := range modeltest.NarrowTasks(t, Backend{}.Storage(played(t), schedule.Fast, array.Invalid).Type) {
		c := kerneltest.Case{Workload: w, Schedule: schedule.New(w), Workers: 1, Args: kerneltest.Fill(w, 1)}
		right, err := expr.Evaluate(w, c.Args)
		if err != nil {
			t.Fatal(err)
		}
		if text := c.Wrong(right); text != "" {
			t.Errorf("%s:\n%s", text, w.Text())
		}
		for k, a := range right {
			given := slices.Clone(right)
			given[k] = array.New(a.DType, a.Shape...)
			if c.Wrong(given) == "" {
				t.Errorf("zeros pass for output %d of\n%s", k, w.Text())
			}
		}
	}
}
