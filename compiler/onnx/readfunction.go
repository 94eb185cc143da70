package onnx

import "fmt"

// function reads a FunctionProto of a model.
func (r *reader) function(data []byte) (*Function, error) {
	fn := &Function{}
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&fn.Name)
		case 4:
			return f.texts(&fn.Inputs)
		case 5:
			return f.texts(&fn.Outputs)
		case 6:
			return f.texts(&fn.Attributes)
		case 7:
			return addPart(r, &fn.Nodes, f, r.node)
		case 9:
			return addPart(r, &fn.Opsets, f, r.opset)
		case 10:
			return f.domain(&fn.Domain)
		case 11:
			return addPart(r, &fn.Defaults, f, r.attribute)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("function %q: %w", fn.Name, err)
	}
	fn.Nodes = sorted(fn.Nodes)
	return fn, nil
}
