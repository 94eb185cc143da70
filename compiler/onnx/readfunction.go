package onnx

import "fmt"

// function reads a FunctionProto of a model.
func (r *reader) function(m *Model, f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	if err := r.part(); err != nil {
		return err
	}
	fn := &Function{}
	err = eachField(b, func(f field) error { return r.functionPart(fn, f) })
	fn.Nodes = sorted(fn.Nodes)
	if err != nil {
		return fmt.Errorf("function %q: %w", fn.Name, err)
	}
	m.Functions = append(m.Functions, fn)
	return nil
}

func (r *reader) functionPart(fn *Function, f field) error {
	list := func(to *[]string) error {
		var s string
		err := f.text(&s)
		*to = append(*to, s)
		return err
	}
	switch f.number {
	case 1:
		return f.text(&fn.Name)
	case 4:
		return list(&fn.Inputs)
	case 5:
		return list(&fn.Outputs)
	case 6:
		return list(&fn.Attributes)
	case 7:
		b, err := f.message()
		if err != nil {
			return err
		}
		if err := r.part(); err != nil {
			return err
		}
		n, err := r.node(b, 0)
		fn.Nodes = append(fn.Nodes, n)
		return err
	case 9:
		return r.opset(&fn.Opsets, f)
	case 10:
		return f.domain(&fn.Domain)
	case 11:
		b, err := f.message()
		if err != nil {
			return err
		}
		a, err := r.attribute(b, 0)
		fn.Defaults = append(fn.Defaults, a)
		return err
	}
	return nil
}
