package codegen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Reference is a translation unit with a plain scalar kernel of the workload, against which candidates are verified.
// It must be more exact than what it judges, so it adds floating point numbers in double: a single float that takes in
// millions of terms in their order is further from their sum than any candidate, which has many partial sums.
func Reference(w *expr.Workload) (string, error) {
	s, err := Plain(w)
	if err != nil {
		return "", fmt.Errorf("reference: %w", err)
	}
	p, err := Print("k0", backend.Kernel{ID: "reference", Schedule: s}, nil)
	if err != nil {
		return "", err
	}
	return Link(w, []backend.Printed{p}, nil)
}

// Plain is the schedule of the reference. It is not of w itself, but of the same sums in double.
func Plain(w *expr.Workload) (*schedule.Schedule, error) {
	s := schedule.New(exact(w))
	if err := byRows(s); err != nil {
		return nil, err
	}
	return s, onAllWorkers(s)
}

// exact is the workload with each sum of floating point numbers computed in double, and then rounded to its type by a
// stage of its own.
func exact(w *expr.Workload) *expr.Workload {
	replaced := map[*expr.Tensor]*expr.Tensor{}
	e := &expr.Workload{Inputs: w.Inputs, Constants: w.Constants}
	for _, t := range w.Stages {
		c := *t
		c.Body = expr.Rewrite(t.Body, func(x expr.Expr) expr.Expr {
			if l, ok := x.(*expr.Load); ok && replaced[l.Tensor] != nil {
				return &expr.Load{Tensor: replaced[l.Tensor], Index: l.Index}
			}
			return x
		})
		result := &c
		if t.Combiner == expr.Sum && t.DType.IsFloat() && t.DType != array.Float64 {
			c.DType, c.Body, c.Strides = array.Float64, expr.To(array.Float64, c.Body), nil
			e.Stages = append(e.Stages, &c)
			result = expr.Compute(t.Name, t.Shape, func(i []expr.Expr) expr.Expr { return expr.To(t.DType, c.At(i...)) })
			result.Strides = t.Strides
		}
		e.Stages, replaced[t] = append(e.Stages, result), result
	}
	for _, t := range w.Outputs {
		e.Outputs = append(e.Outputs, replaced[t])
	}
	return e
}

// byRows computes the sums a row of the result at a time, with the row as the innermost loop, which reads most
// operands in the order in which they lie; a C compiler can make vectors of it.
func byRows(s *schedule.Schedule) error {
	for _, g := range s.Stages {
		row := rowAxis(g)
		if g.Combiner != expr.Sum || row < 0 {
			continue
		}
		var order []int
		for k := range len(g.Axes) + len(g.Reduce) {
			if k != row {
				order = append(order, k)
			}
		}
		if err := s.Reorder(g.ID, append(order, row)...); err != nil {
			return err
		}
		if c := rounded(s, g); c != nil && row > 0 {
			if err := s.ComputeAt(g.ID, c.ID, row-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// onAllWorkers splits each stage's outermost axis over the workers, but where it is the row: a large workload takes
// seconds on one.
func onAllWorkers(s *schedule.Schedule) error {
	for _, g := range s.Stages {
		if g.At != nil || rowAxis(g) < 1 {
			continue
		}
		if err := s.Parallel(g.ID, g.Leaves[0].ID); err != nil {
			return err
		}
	}
	return nil
}

// rowAxis is the last axis that is longer than one, or 0; -1 for a scalar.
func rowAxis(g *schedule.Stage) int {
	row := len(g.Axes) - 1
	for row > 0 && g.Axes[row].Extent == 1 {
		row--
	}
	return row
}

// rounded is the stage that rounds the sums of g and is the only one to read them; nil when there is none.
func rounded(s *schedule.Schedule, g *schedule.Stage) *schedule.Stage {
	c := s.Consumers(g)
	if g.IsOutput || len(c) != 1 || c[0].Combiner != expr.None || !slices.Equal(c[0].Tensor.Shape, g.Tensor.Shape) || !c[0].ReadsPointwise(g.Tensor) {
		return nil
	}
	return c[0]
}
