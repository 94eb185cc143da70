package ir

import (
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Verify checks the invariants of a kernel, which passes must preserve. Variables are bound exactly once before use.
// Buffers are used within their scope, with a single index. Loops have iterations. Vector loops hold only stores, and
// parallel loops do not nest. Loops over blocks do not lie inside loops over blocks or threads, loops over threads do
// not nest, and barriers are outside them. Walks are inside blocks, and only serial loops have a range.
func (f *Func) Verify() error {
	v := &verifier{buffers: map[*expr.Tensor]*Buffer{}, bound: map[*expr.Var]bool{}}
	for _, b := range f.Args {
		if b != nil {
			v.buffers[b.Tensor] = b
		}
	}
	for _, p := range f.Prepared {
		v.buffers[p.Buffer.Tensor] = p.Buffer
	}
	if err := v.block(f.Body); err != nil {
		return fmt.Errorf("ir: %w", err)
	}
	return nil
}

type verifier struct {
	// buffers and bound hold the buffers and variables in scope.
	buffers map[*expr.Tensor]*Buffer
	bound   map[*expr.Var]bool
	// parallel and vector are set inside such loops, blocks and threads inside those of a GPU.
	parallel, vector, blocks, threads bool
}

// block verifies a block. Its bindings end with it.
func (v *verifier) block(b Block) error {
	var vars []*expr.Var
	var tensors []*expr.Tensor
	defer func() {
		for _, x := range vars {
			delete(v.bound, x)
		}
		for _, t := range tensors {
			delete(v.buffers, t)
		}
	}()
	for _, st := range b {
		if _, ok := st.(*Store); v.vector && !ok {
			return fmt.Errorf("a vector loop holds a %T", st)
		}
		switch n := st.(type) {
		case *Let:
			if err := errors.Join(v.uses(n.Value), v.bind(n.Var)); err != nil {
				return err
			}
			vars = append(vars, n.Var)
		case *Alloc:
			if !n.Buffer.Space.Allocated() || v.buffers[n.Buffer.Tensor] != nil {
				return fmt.Errorf("buffer %s is allocated twice, or is none that a kernel allocates", n.Buffer.Tensor.Name)
			}
			v.buffers[n.Buffer.Tensor] = n.Buffer
			tensors = append(tensors, n.Buffer.Tensor)
		case *Define:
			if err := v.define(n); err != nil {
				return err
			}
			v.buffers[n.Buffer.Tensor] = n.Buffer
			tensors = append(tensors, n.Buffer.Tensor)
		default:
			if err := v.stmt(st); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) stmt(st Stmt) error {
	switch n := st.(type) {
	case *For:
		return v.loop(n)
	case *If:
		return errors.Join(v.uses(n.Cond), v.block(n.Then), v.block(n.Else))
	case *Barrier:
		if v.threads || !v.blocks {
			return errors.New("a barrier is in divergent control flow")
		}
		return nil
	case *Call:
		if err := v.call(n); err != nil {
			return err
		}
	}
	return v.simple(st)
}

// define verifies the value of a register.
func (v *verifier) define(n *Define) error {
	if n.Buffer.Space != Register || len(n.Buffer.Slots) != 1 || v.buffers[n.Buffer.Tensor] != nil {
		return fmt.Errorf("%s is defined twice, or is not a vector in a register", n.Buffer.Tensor.Name)
	}
	if n.Lane == nil {
		return v.uses(n.Value)
	}
	defer delete(v.bound, n.Lane)
	return errors.Join(v.bind(n.Lane), v.uses(n.Value))
}

// simple verifies a statement without nested ones.
func (v *verifier) simple(st Stmt) (err error) {
	if b := Written(st); b != nil && v.buffers[b.Tensor] == nil {
		return fmt.Errorf("buffer %s is stored to out of scope", b.Tensor.Name)
	}
	VisitExprs(Block{st}, func(e expr.Expr) { err = errors.Join(err, v.uses(e)) })
	return err
}

func (v *verifier) loop(n *For) error {
	if n.Extent < 1 {
		return fmt.Errorf("the loop over %s has %d iterations", n.Var.Name, n.Extent)
	}
	if n.Kind == Parallel && v.parallel {
		return fmt.Errorf("the parallel loop over %s is inside another", n.Var.Name)
	}
	if n.Kind == Blocks && (v.blocks || v.threads) || n.Kind == Threads && v.threads {
		return fmt.Errorf("the loop over %s is inside another of its kind, or one on threads", n.Var.Name)
	}
	if n.Kind == Persistent && (!v.blocks || n.Range == nil) {
		return fmt.Errorf("the walk over %s is that of no block", n.Var.Name)
	}
	if err := v.between(n); err != nil {
		return err
	}
	around := *v
	v.parallel, v.vector = v.parallel || n.Kind == Parallel, v.vector || n.Kind == Vector
	v.blocks, v.threads = v.blocks || n.Kind == Blocks, v.threads || n.Kind == Threads
	err := v.bind(n.Var)
	if err == nil {
		err = v.block(n.Body)
	}
	delete(v.bound, n.Var)
	v.parallel, v.vector, v.blocks, v.threads = around.parallel, around.vector, around.blocks, around.threads
	return err
}

// between verifies the range of a loop.
func (v *verifier) between(n *For) error {
	switch r := n.Range; {
	case n.Tiles != nil && n.Kind != Blocks:
		return fmt.Errorf("the loop over %s has tiles for blocks, and is none on blocks", n.Var.Name)
	case r == nil:
		return nil
	case n.Kind == Parallel && (!expr.Same(r.First, expr.I(0)) || r.Every != 1):
		return fmt.Errorf("the parallel loop over %s does not begin with the first iteration, or leaves some out", n.Var.Name)
	case n.Kind != Serial && n.Kind != Persistent && n.Kind != Parallel:
		return fmt.Errorf("the %v loop over %s has a range, which loops of its kind do not have", n.Kind, n.Var.Name)
	case r.Every < 1:
		return fmt.Errorf("the loop over %s does not go on", n.Var.Name)
	case len(expr.Loads(r.First)) > 0 || len(expr.Loads(r.End)) > 0:
		return fmt.Errorf("the range of the loop over %s is read from memory", n.Var.Name)
	default:
		return errors.Join(v.uses(r.First), v.uses(r.End))
	}
}

func (v *verifier) bind(x *expr.Var) error {
	if v.bound[x] {
		return fmt.Errorf("variable %s is bound twice", x.Name)
	}
	v.bound[x] = true
	return nil
}

func (v *verifier) uses(e expr.Expr) (err error) {
	lanes := map[*expr.Var]bool{} // an expression is visited before its operands
	expr.Walk(e, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Var:
			if !v.bound[n] && !lanes[n] {
				err = fmt.Errorf("variable %s is used where it is not bound", n.Name)
			}
		case *Across:
			lanes[n.Lane] = true
		case *Apply:
			err = errors.Join(err, v.executed(n.Instruction))
		case *expr.Load:
			if v.buffers[n.Tensor] == nil {
				err = fmt.Errorf("buffer %s is read out of scope", n.Tensor.Name)
			}
			if len(n.Index) != 1 {
				err = fmt.Errorf("buffer %s is read with %d indices", n.Tensor.Name, len(n.Index))
			}
		}
	})
	return err
}
