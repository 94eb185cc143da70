package evaluate

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Program evaluates a program. All bits of memory that the inputs do not fill are set, so that reads of elements
// without a value change results. inputs has an array for each input's name; the result one for each output's.
func Program(p *program.Program, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	return Calls(p, inputs, func(program.Call, []*array.Array, []*array.Array) {})
}

// Calls evaluates a program and reports each needed call with its arguments, dense in the shapes of its
// workload, and its results.
func Calls(p *program.Program, inputs map[string]*array.Array,
	visit func(c program.Call, args, results []*array.Array)) (map[string]*array.Array, error) {
	extents, err := extentsOf(p, inputs)
	if err != nil {
		return nil, fmt.Errorf("evaluate %q: %w", p.Name, err)
	}
	m := memory{program: p, roots: make([][]byte, len(p.Values)), extents: extents}
	for k, e := range p.Extents {
		n := array.New(array.Int64)
		n.SetInt(0, extents[k])
		m.roots[e.Value] = n.Data
	}
	for _, k := range p.Inputs {
		v, a, shape := p.Values[k], inputs[p.Values[k].Name], shapeOf(p, k, extents)
		switch {
		case a == nil:
			return nil, fmt.Errorf("evaluate %q: input %q is missing", p.Name, v.Name)
		case a.DType != v.DType || !slices.Equal(a.Shape, shape):
			return nil, fmt.Errorf("evaluate %q: input %q is %v%v, want %v%v", p.Name, v.Name, a.DType, a.Shape, v.DType, shape)
		}
		if err := a.Check(); err != nil {
			return nil, fmt.Errorf("evaluate %q: input %q: %w", p.Name, v.Name, err)
		}
		root := p.Root(k)
		m.roots[root] = a.Data
		if whole := p.MemoryOf(k); !slices.Equal(shape, whole) {
			m.roots[root] = unknown(v.DType, whole)
			a.CopyToCorner(m.roots[root], whole)
		}
	}
	for _, c := range p.Checks {
		k := p.Inputs[c.Input]
		memory := &array.Array{DType: p.Values[k].DType, Shape: p.MemoryOf(k), Data: m.roots[p.Root(k)]}
		if err := check(p, c, memory, extents); err != nil {
			return nil, fmt.Errorf("evaluate %q: %w", p.Name, err)
		}
	}
	if err := m.execute(visit); err != nil {
		return nil, err
	}
	for _, r := range p.Required {
		if m.read(r.Value, nil).Int(0) == 0 {
			return nil, fmt.Errorf("evaluate %q: %s", p.Name, r.Why)
		}
	}
	outputs := map[string]*array.Array{}
	for _, k := range p.Outputs {
		outputs[p.Values[k].Name] = m.read(k, p.Values[k].Shape).Corner(shapeOf(p, k, extents))
	}
	for _, o := range p.Open {
		name := p.Values[p.Outputs[o.Output]].Name
		outputs[name] = outputs[name].Head(o.Axis, m.read(o.Count, nil).Int(0))
	}
	return outputs, nil
}

// memory holds the written bytes of each root value of a program.
type memory struct {
	program *program.Program
	roots   [][]byte
	extents []int64
}

// execute makes the calls.
func (m memory) execute(visit func(c program.Call, args, results []*array.Array)) error {
	p := m.program
	set := func(value, to int) {
		a := m.read(to, p.Values[to].Shape)
		copy(m.at(value).Data, a.Data)
	}
	return p.Execute(program.Execution{
		Call: func(k int) error {
			c := p.Calls[k]
			if !m.hold(c.If) {
				return nil
			}
			args, results, err := m.call(c)
			if err != nil {
				return fmt.Errorf("evaluate %q: call %q: %w", p.Name, c.Name, err)
			}
			visit(c, args, results)
			return nil
		},
		Begin: func(l program.Loop) int64 {
			for _, s := range l.States {
				set(s.Value, s.Init)
			}
			return m.read(l.Iterations, nil).Int(0)
		},
		Step: func(l program.Loop, iteration int64) bool {
			n := array.New(array.Int64)
			n.SetInt(0, iteration)
			m.roots[l.Counter] = n.Data
			return !l.While || m.read(l.States[0].Value, nil).Int(0) != 0
		},
		Advance: func(l program.Loop) {
			for _, s := range l.States {
				set(s.Value, s.Next)
			}
		},
	})
}

// hold reports whether all conditions hold.
func (m memory) hold(conditions []program.Condition) bool {
	for _, c := range conditions {
		if (m.read(c.Value, nil).Int(0) != 0) != c.Is {
			return false
		}
	}
	return true
}

func (m memory) call(c program.Call) (args, results []*array.Array, err error) {
	w := m.program.Tasks[c.Task].Workload
	tensors := w.Args()
	known := len(c.Args) - len(w.Outputs)
	args = make([]*array.Array, known)
	for k, v := range c.Args[:known] {
		args[k] = m.read(v, tensors[k].Shape)
	}
	if results, err = expr.Evaluate(w, args); err != nil {
		return nil, nil, err
	}
	computed := expr.OutputShapes(w, args)
	for k, v := range c.Args[known:] {
		a := Strided{Data: results[k].Data, Strides: expr.RowMajorStrides(results[k].Shape)}
		CopyStrided(results[k].DType, computed[k], Strided{Data: m.at(v).Data, Strides: w.Outputs[k].MemoryStrides()}, a)
	}
	return args, results, nil
}

// read returns a value in a shape that may differ from its own by axes of extent one and merged neighbours.
func (m memory) read(v int, shape []int64) *array.Array {
	value := m.program.Values[v]
	if value.Data != nil {
		return &array.Array{DType: value.DType, Shape: shape, Data: value.Data.Data}
	}
	a := array.New(value.DType, shape...)
	CopyStrided(value.DType, value.Shape, Strided{Data: a.Data, Strides: expr.RowMajorStrides(value.Shape)}, m.at(v))
	return a
}

// unknown returns the memory of a tensor without values.
func unknown(d array.DType, shape []int64) []byte {
	return bytes.Repeat([]byte{0xff}, int(array.Elements(shape)*d.Bytes()))
}

// at returns the location of a value in the memory of its root.
func (m memory) at(v int) Strided {
	value, root := m.program.Values[v], m.program.Root(v)
	if m.roots[root] == nil {
		r := m.program.Values[root]
		m.roots[root] = unknown(r.DType, r.Shape)
	}
	strides := value.Strides
	if strides == nil {
		strides = expr.RowMajorStrides(value.Shape)
	}
	begin := program.Form{Plus: value.Offset, Times: value.Moves}.At(m.extents)
	for k, n := range value.Turns {
		if n != 0 {
			begin += n * m.read(m.program.Loops[k].Counter, nil).Int(0)
		}
	}
	for k, n := range value.Lengths {
		if n != 0 {
			begin += n * m.read(m.program.Loops[k].Iterations, nil).Int(0)
		}
	}
	return Strided{Data: m.roots[root][begin*value.DType.Bytes():], Strides: strides}
}
