package expr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Workload is a DAG of tensors that one kernel computes. Two workloads that compute the same in the same way have
// the same canonical text and digest, regardless of their tensors' names.
type Workload struct {
	// Inputs, then Constants, then Outputs are the kernel's arguments, in this order.
	Inputs, Constants, Outputs []*Tensor
	// Stages lists the computed tensors, producers before consumers; the outputs are among them.
	Stages []*Tensor
}

// NewWorkload collects all tensors that the outputs depend on. Inputs and constants are ordered by their first use;
// pass them in args to fix another order (or to keep an unused one).
func NewWorkload(outputs []*Tensor, args ...*Tensor) (*Workload, error) {
	w := &Workload{Outputs: outputs}
	seen := map[*Tensor]bool{}
	for _, t := range args {
		if t.Role == Computed {
			return nil, fmt.Errorf("workload: argument %s is computed", t.Name)
		}
		w.add(t, seen)
	}
	for _, t := range outputs {
		if t.Role != Computed {
			return nil, fmt.Errorf("workload: output %s is not computed", t.Name)
		}
		w.add(t, seen)
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("workload: no outputs")
	}
	if err := w.checkMemory(); err != nil {
		return nil, err
	}
	for _, t := range w.Stages {
		if err := checkTensor(t); err != nil {
			return nil, fmt.Errorf("workload: tensor %s: %w", t.Name, err)
		}
	}
	return w, nil
}

func (w *Workload) add(t *Tensor, seen map[*Tensor]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Role {
	case Input:
		w.Inputs = append(w.Inputs, t)
	case Constant:
		w.Constants = append(w.Constants, t)
	default:
		for _, l := range Loads(t.Body) {
			w.add(l.Tensor, seen)
		}
		for _, v := range t.variables() {
			if v.Limit != nil {
				for _, l := range Loads(v.Limit) {
					w.add(l.Tensor, seen)
				}
			}
		}
		w.Stages = append(w.Stages, t)
	}
}

// Args returns the kernel's arguments: inputs, constants, outputs.
func (w *Workload) Args() []*Tensor {
	args := append([]*Tensor{}, w.Inputs...)
	args = append(args, w.Constants...)
	return append(args, w.Outputs...)
}

// Digest returns the lower-case hex SHA-256 of the canonical text.
func (w *Workload) Digest() string {
	sum := sha256.Sum256([]byte(w.Text()))
	return hex.EncodeToString(sum[:])
}

func checkTensor(t *Tensor) error {
	if len(t.Axes) != len(t.Shape) {
		return fmt.Errorf("%d axes for shape %v", len(t.Axes), t.Shape)
	}
	if (t.Combiner == None) != (len(t.Reduce) == 0) {
		return fmt.Errorf("combiner %v with %d reduction axes", t.Combiner, len(t.Reduce))
	}
	if t.Body == nil || t.Body.DType() != t.DType {
		return fmt.Errorf("body is not %v", t.DType)
	}
	known := map[*Var]bool{}
	for k, v := range t.Axes {
		if v.Extent != t.Shape[k] || v.Extent <= 0 {
			return fmt.Errorf("axis %d has extent %d in shape %v", k, v.Extent, t.Shape)
		}
		known[v] = true
	}
	for k, v := range t.Reduce {
		if v.Extent <= 0 {
			return fmt.Errorf("reduction axis %d has extent %d", k, v.Extent)
		}
		known[v] = true
	}
	if _, err := array.CheckedBytes(t.DType, t.Shape); err != nil {
		return err
	}
	for _, v := range t.variables() {
		if err := checkLimit(v); err != nil {
			return err
		}
	}
	return checkExpr(t.Body, known)
}

func checkExpr(e Expr, known map[*Var]bool) (err error) {
	Walk(e, func(x Expr) {
		if err != nil {
			return
		}
		switch x := x.(type) {
		case *Var:
			if !known[x] {
				err = fmt.Errorf("body uses foreign variable %s", x.Name)
			}
		case *Load:
			if len(x.Index) != len(x.Tensor.Shape) {
				err = fmt.Errorf("%d indices into %s%v", len(x.Index), x.Tensor.Name, x.Tensor.Shape)
			}
		case *Select:
			if x.Cond.DType() != array.Bool {
				err = fmt.Errorf("select on %v", x.Cond.DType())
			}
		}
	})
	return err
}
