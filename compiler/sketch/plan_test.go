package sketch

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// plain leaves all loops as they are.
var plain = Sketches{Map: func(*schedule.Schedule, Unit) searchspace.Family {
	return &searchspace.Sketch[struct{}]{Variants: []searchspace.Variant[struct{}]{{By: searchspace.Direct, Structure: nothing{}}}}
}}

// TestFunctionsAreComputedOnce where two readers want them, whatever function it is.
func TestFunctionsAreComputedOnce(t *testing.T) {
	for _, op := range []expr.UnaryOp{expr.Exp, expr.Sin, expr.Atanh, expr.Neg} {
		x := expr.NewInput("x", array.Float32, 64)
		f := expr.Compute("f", x.Shape, func(i []expr.Expr) expr.Expr { return expr.Un(op, x.At(i...)) })
		var outputs []*expr.Tensor
		for _, name := range []string{"a", "b"} {
			outputs = append(outputs, expr.Compute(name, []int64{2, 64}, func(i []expr.Expr) expr.Expr { return expr.AddE(f.At(i[1]), f.At(i[1])) }))
		}
		w, err := expr.NewWorkload(outputs)
		if err != nil {
			t.Fatal(err)
		}
		inlined := len(analyse(w, plain).inline) > 0
		if want := op.Work() == expr.Simple; inlined != want {
			t.Errorf("%v is computed by each reader: %v, want %v", op, inlined, want)
		}
	}
}
