package kerneltest

import (
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// VerifyMeaning checks that the meaning of an instruction agrees with its parameters: the memory, the number and the
// rows of its elements, and what it reads and writes.
func VerifyMeaning(i *ir.Instruction) error {
	m := i.Meaning
	if m == nil || len(m.Operands) != len(i.Params) {
		return fmt.Errorf("%s has no meaning, or one with other operands than its %d", i.Name, len(i.Params))
	}
	whole := &ir.Func{}
	used := map[*expr.Tensor]*uses{}
	for k, p := range i.Params {
		f := m.Operands[k]
		if err := agrees(f, p, i.By); err != nil {
			return fmt.Errorf("operand %s of the meaning of %s %w", p.Name, i.Name, err)
		}
		for _, x := range []*expr.Var{f.Value, f.Row, f.Thread} {
			if x != nil {
				whole.Body = append(whole.Body, &ir.Let{Var: x, Value: expr.I(1)})
			}
		}
		if f.Buffer != nil {
			whole.Args = append(whole.Args, f.Buffer)
			used[f.Buffer.Tensor] = &uses{formal: f}
		}
	}
	whole.Body = append(whole.Body, m.Body...)
	err := whole.Verify()
	ir.Visit(m.Body, func(st ir.Stmt) {
		switch n := st.(type) {
		case *ir.For, *ir.Alloc:
		case *ir.Store:
			used[n.Buffer.Tensor].use(n.Index, true)
			for _, l := range expr.Loads(n.Value) {
				used[l.Tensor].use(l.Index[0], false)
			}
		default:
			err = errors.Join(err, fmt.Errorf("it has a %T", st))
		}
	})
	for k, p := range i.Params {
		if f := m.Operands[k]; f.Buffer != nil {
			err = errors.Join(err, used[f.Buffer.Tensor].agree(p))
		}
	}
	if err != nil {
		return fmt.Errorf("the meaning of %s: %w", i.Name, err)
	}
	return nil
}

// agrees checks a formal against its parameter.
func agrees(f ir.Formal, p ir.Param, by ir.Executor) error {
	switch b := f.Buffer; {
	case (f.Value != nil) != (p.Use == ir.Value), (b != nil) != (p.Use == ir.Read || p.Use == ir.Write || p.Use == ir.Update):
		return errors.New("is a value instead of elements, or the other way round")
	case b == nil:
		return nil
	case b.Space != p.In:
		return fmt.Errorf("lies in %v instead of %v memory", b.Space, p.In)
	case (f.Row != nil) != p.HasRows():
		return errors.New("has rows at a stride, and the parameter none, or the other way round")
	case f.Thread != nil && by != ir.ByGroup, f.Thread == nil && by == ir.ByGroup && p.In == ir.Private:
		return errors.New("is not that of the threads that execute the instruction")
	case p.Lanes > 0 && p.Lanes != b.Elements(), p.Bytes > 0 && p.Bytes != b.Bytes():
		return fmt.Errorf("has %d elements in %d bytes, unlike the parameter", b.Elements(), b.Bytes())
	}
	return nil
}

// uses describes the accesses to the elements of a formal. Methods accept nil, for buffers that a meaning allocates.
type uses struct {
	formal        ir.Formal
	read, written bool
	err           error
}

// use records an access, which must be to one of the elements.
func (u *uses) use(index expr.Expr, written bool) {
	if u == nil {
		return
	}
	u.read, u.written = u.read || !written, u.written || written
	b := u.formal.Buffer
	_, _, place := u.formal.Place(index)
	if lowest, highest, ok := place.Bounds(); !ok || lowest < 0 || highest >= b.Elements() {
		u.err = fmt.Errorf("%s has %d elements, and not all of %d to %d", b.Tensor.Name, b.Elements(), lowest, highest)
	}
}

// agree checks that the accesses are those of a parameter.
func (u *uses) agree(p ir.Param) error {
	if u.read != (p.Use == ir.Read || p.Use == ir.Update) || u.written != (p.Use == ir.Write || p.Use == ir.Update) {
		return fmt.Errorf("operand %s is read: %v, written: %v, unlike the parameter", p.Name, u.read, u.written)
	}
	return u.err
}
