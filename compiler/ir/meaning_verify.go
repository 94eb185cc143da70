package ir

import (
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// VerifyMeaning checks that the meaning of an instruction agrees with its parameters: the memory, the number and the
// rows of its elements, and what it reads and writes. It returns nil if the instruction has no meaning.
func (i *Instruction) VerifyMeaning() error {
	if i.Meaning == nil {
		return nil
	}
	if len(i.Meaning.Operands) != len(i.Params) {
		return fmt.Errorf("the meaning of %s has %d operands instead of %d", i.Name, len(i.Meaning.Operands), len(i.Params))
	}
	v := &verifier{buffers: map[*expr.Tensor]*Buffer{}, bound: map[*expr.Var]bool{}}
	used := map[*expr.Tensor]*uses{}
	for k, p := range i.Params {
		f := i.Meaning.Operands[k]
		if err := f.agrees(p, i.By); err != nil {
			return fmt.Errorf("operand %s of the meaning of %s %w", p.Name, i.Name, err)
		}
		for _, x := range []*expr.Var{f.Value, f.Row, f.Thread} {
			if x != nil {
				v.bound[x] = true
			}
		}
		if f.Buffer != nil {
			v.buffers[f.Buffer.Tensor], used[f.Buffer.Tensor] = f.Buffer, &uses{formal: f}
		}
	}
	err := v.block(i.Meaning.Body)
	Visit(i.Meaning.Body, func(st Stmt) {
		switch n := st.(type) {
		case *For, *Alloc:
		case *Store:
			used[n.Buffer.Tensor].use(n.Index, true)
			for _, l := range expr.Loads(n.Value) {
				used[l.Tensor].use(l.Index[0], false)
			}
		default:
			err = errors.Join(err, fmt.Errorf("it has a %T", st))
		}
	})
	for k, p := range i.Params {
		if f := i.Meaning.Operands[k]; f.Buffer != nil {
			err = errors.Join(err, used[f.Buffer.Tensor].agree(p))
		}
	}
	if err != nil {
		return fmt.Errorf("the meaning of %s: %w", i.Name, err)
	}
	return nil
}

// agrees checks a formal against its parameter.
func (f Formal) agrees(p Param, by Executor) error {
	switch b := f.Buffer; {
	case (f.Value != nil) != (p.Use == Value), (b != nil) != (p.Use == Read || p.Use == Write || p.Use == Update):
		return errors.New("is a value instead of elements, or the other way round")
	case b == nil:
		return nil
	case b.Space != p.In:
		return fmt.Errorf("lies in %v instead of %v memory", b.Space, p.In)
	case (f.Row != nil) != p.rows():
		return errors.New("has rows at a stride, and the parameter none, or the other way round")
	case f.Thread != nil && by != ByGroup, f.Thread == nil && by == ByGroup && p.In == Private:
		return errors.New("is not that of the threads that execute the instruction")
	case p.Lanes > 0 && p.Lanes != b.Elements(), p.Bytes > 0 && p.Bytes != b.Bytes():
		return fmt.Errorf("has %d elements in %d bytes, unlike the parameter", b.Elements(), b.Bytes())
	}
	return nil
}

// uses describes the accesses to the elements of a formal. Methods accept nil, for buffers that a meaning allocates.
type uses struct {
	formal        Formal
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
func (u *uses) agree(p Param) error {
	if u.read != (p.Use == Read || p.Use == Update) || u.written != (p.Use == Write || p.Use == Update) {
		return fmt.Errorf("operand %s is read: %v, written: %v, unlike the parameter", p.Name, u.read, u.written)
	}
	return u.err
}
