package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestReferenceIsRight compares the references of workloads with the evaluator. Their code is scalar, and much the
// same for any target.
func TestReferenceIsRight(t *testing.T) {
	for _, m := range quick([]mode{modes[1], modes[len(modes)-1]}, "avx2") {
		t.Run(m.name, func(t *testing.T) {
			draw := rapid.Custom(func(t *rapid.T) kerneltest.Case {
				return referenceCase(t, kerneltest.DrawWorkload(t))
			})
			rapid.Check(t, func(rt *rapid.T) {
				cases := kerneltest.Batch(rt, draw, batchSize)
				for _, c := range cases {
					if _, err := Reference(c.Workload); err != nil {
						rt.Fatalf("no reference: %v\n%s", err, c.Text())
					}
				}
				checkCases(t, rt, m, cases)
			})
		})
	}
}

// TestLongSumIsExact guards against a single float accumulator, which stops growing once its terms are less than
// half of its last bit. It made the norm of a 4096 x 1024 matrix fail verification.
func TestLongSumIsExact(t *testing.T) {
	const terms = 1<<24 + 1024
	one := expr.NewInput("one", array.Float32, 1)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{1}, []int64{terms}, func(i, _ []expr.Expr) expr.Expr { return one.At(i[0]) })
	product := expr.ReduceOver("product", expr.Sum, []int64{1}, []int64{terms}, func(i, _ []expr.Expr) expr.Expr {
		return expr.MulE(one.At(i[0]), one.At(i[0]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{sum, product})
	if err != nil {
		t.Fatal(err)
	}
	c := referenceCase(t, w)
	c.Args[0].SetFloat(0, 1)
	want, err := expr.Evaluate(w, c.Args)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _, err := modes[1].execute(t, []kerneltest.Case{c})
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		if e, r := want[k].Float(0), got[0][k].Float(0); e != terms || r != terms {
			t.Errorf("output %d: the evaluator says %v, the reference %v, the sum is %d", k, e, r, terms)
		}
	}
}

func referenceCase(t failer, w *expr.Workload) kerneltest.Case {
	s, err := Plain(w)
	if err != nil {
		t.Fatalf("%v\n%s", err, w.Text())
	}
	return kerneltest.Case{Workload: w, Schedule: s, Workers: 1, Args: kerneltest.Fill(w, 1)}
}
