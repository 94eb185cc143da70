package vta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// lane is the variable of the lanes in the meanings of vector instructions.
var lane = &expr.Var{Name: "lane", Extent: block}

// vector is an instruction of the vector lanes: a value for each lane, as an expression of the lane's elements in rows
// of operands and of immediate values.
type vector struct {
	name string
	// rows and immediates are the formal operands: tensors of block elements, and of one.
	rows, immediates []*expr.Tensor
	value            expr.Expr
}

// row returns a lane's element of a new operand.
func (v *vector) row(d array.DType) expr.Expr {
	t := ir.Flat(fmt.Sprintf("r%d", len(v.rows)), d, block)
	v.rows = append(v.rows, t)
	return t.At(lane)
}

// immediate returns a new immediate value.
func (v *vector) immediate(d array.DType) expr.Expr {
	t := ir.Flat(fmt.Sprintf("x%d", len(v.immediates)), d, 1)
	v.immediates = append(v.immediates, t)
	return t.At(expr.I(0))
}

// vectors lists the vector instructions, those that compute most first.
var vectors = vectorTable()

func vectorTable() []*vector {
	const i32, f32 = array.Int32, array.Float32
	var list []*vector
	add := func(name string, value func(v *vector) expr.Expr) {
		v := &vector{name: name}
		v.value = value(v)
		list = append(list, v)
	}
	quantised := func(v *vector, x expr.Expr) expr.Expr {
		clamped := expr.Bin(expr.Min, expr.Bin(expr.Max, x, v.immediate(f32)), v.immediate(f32))
		return expr.To(i32, expr.Un(expr.Round, clamped))
	}
	scaled := func(v *vector) expr.Expr {
		return expr.Bin(expr.Add, expr.Bin(expr.Mul, expr.To(f32, v.row(i32)), v.row(f32)), v.row(f32))
	}
	for _, d := range []array.DType{array.Uint8, array.Int8} {
		shifted := func(v *vector, x expr.Expr) expr.Expr { return expr.To(d, expr.Bin(expr.Add, x, v.immediate(i32))) }
		add(fmt.Sprintf("requantise_shift_%v", d), func(v *vector) expr.Expr { return shifted(v, quantised(v, scaled(v))) })
		add(fmt.Sprintf("requantise_%v", d), func(v *vector) expr.Expr { return expr.To(d, quantised(v, scaled(v))) })
		add(fmt.Sprintf("quantise_shift_%v", d), func(v *vector) expr.Expr { return shifted(v, quantised(v, v.row(f32))) })
		add(fmt.Sprintf("quantise_%v", d), func(v *vector) expr.Expr { return expr.To(d, quantised(v, v.row(f32))) })
		add(fmt.Sprintf("dequantise_%v", d), func(v *vector) expr.Expr {
			offset := expr.Bin(expr.Sub, expr.To(i32, v.row(d)), v.immediate(i32))
			return expr.Bin(expr.Mul, expr.To(f32, offset), v.immediate(f32))
		})
	}
	add("scale", scaled)
	for _, d := range []array.DType{i32, f32} {
		for _, op := range []expr.BinaryOp{expr.Add, expr.Sub, expr.Mul, expr.Min, expr.Max} {
			add(fmt.Sprintf("%v_%v_immediate", op, d), func(v *vector) expr.Expr { return expr.Bin(op, v.row(d), v.immediate(d)) })
			add(fmt.Sprintf("%v_%v", op, d), func(v *vector) expr.Expr { return expr.Bin(op, v.row(d), v.row(d)) })
		}
		add(fmt.Sprintf("set_%v", d), func(v *vector) expr.Expr { return v.immediate(d) })
	}
	add("round", func(v *vector) expr.Expr { return expr.Un(expr.Round, v.row(f32)) })
	for _, c := range [][2]array.DType{{i32, f32}, {f32, i32}, {array.Uint8, i32}, {array.Int8, i32}, {i32, array.Uint8}, {i32, array.Int8}} {
		add(fmt.Sprintf("cast_%v_%v", c[0], c[1]), func(v *vector) expr.Expr { return expr.To(c[1], v.row(c[0])) })
	}
	for _, d := range storable {
		add(fmt.Sprintf("copy_%v", d), func(v *vector) expr.Expr { return v.row(d) })
	}
	return list
}

// operand returns a scratchpad operand.
func operand(name string, use ir.Use) ir.Param {
	return ir.Param{Name: name, Use: use, In: ir.Shared, Form: ir.Place}
}

// instruction returns the instruction with immediate values.
func (v *vector) instruction(immediates []expr.Expr) *ir.Instruction {
	i := &ir.Instruction{Name: v.name, Params: []ir.Param{operand("to", ir.Write)}}
	elements := []*expr.Tensor{ir.Flat("to", v.value.DType(), block)}
	for k, r := range v.rows {
		i.Params = append(i.Params, operand(fmt.Sprintf("r%d", k), ir.Read))
		elements = append(elements, r)
	}
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block {
		value := expr.Rewrite(v.value, func(e expr.Expr) expr.Expr {
			if l, ok := e.(*expr.Load); ok {
				if k := slices.Index(v.immediates, l.Tensor); k >= 0 && immediates != nil {
					return immediates[k]
				}
			}
			return e
		})
		return ir.Nest(ir.Vector, ir.Block{&ir.Store{Buffer: f[0].Buffer, Index: lane, Value: value}}, lane)
	}, elements...)
	return i
}

// match returns the values of rows, and the immediate ones, with which the instruction computes an expression; ok is
// false if it does not. A copy matches only an element.
func (v *vector) match(e expr.Expr) (rows, immediates []expr.Expr, ok bool) {
	_, copies := v.value.(*expr.Load)
	if _, isElement := e.(*expr.Load); copies && !isElement && constantOf(e) == nil {
		return nil, nil, false
	}
	type operand struct {
		formal *expr.Tensor
		value  expr.Expr
	}
	ways := expr.Unify(v.value, e, func(pattern, value expr.Expr) (operand, bool) {
		l, ok := pattern.(*expr.Load)
		if !ok || l.DType() != value.DType() {
			return operand{}, false
		}
		c := constantOf(value)
		if slices.Contains(v.immediates, l.Tensor) {
			return operand{l.Tensor, c}, c != nil
		}
		return operand{l.Tensor, value}, c == nil
	})
	if len(ways) == 0 {
		return nil, nil, false
	}
	for _, o := range ways[0] {
		if slices.Contains(v.immediates, o.formal) {
			immediates = append(immediates, o.value)
		} else {
			rows = append(rows, o.value)
		}
	}
	return rows, immediates, true
}

// constantOf returns the value of a constant expression, or nil for others.
func constantOf(e expr.Expr) expr.Expr {
	switch n := e.(type) {
	case *expr.Int, *expr.Float:
		return n
	case *expr.Cast:
		if c, ok := constantOf(n.A).(*expr.Int); ok {
			switch {
			case n.Type == array.Int32 && c.Type.Bytes() < 4:
				return &expr.Int{Value: c.Value, Type: n.Type}
			case n.Type == array.Float32 && c.Value > -1<<24 && c.Value < 1<<24:
				return expr.F(n.Type, float64(c.Value))
			}
		}
	}
	return nil
}

// product returns the instruction of the matrix unit for bytes of a type: it adds to each sum the products of inputs
// and the weights of the sum's column. Rows of weights are apart by a distance.
func product(d array.DType, distance expr.Expr) *ir.Instruction {
	name := fmt.Sprintf("product_%v", d)
	i := &ir.Instruction{Name: name, Params: []ir.Param{operand("sums", ir.Update), operand("inputs", ir.Read), operand("weights", ir.Read)}}
	rows := int64(block * block)
	if n, ok := distance.(*expr.Int); ok {
		rows = (block-1)*n.Value + block
	}
	term, column := &expr.Var{Name: "term", Extent: block}, &expr.Var{Name: "column", Extent: block}
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block {
		at := expr.AddE(expr.MulE(term, distance), column)
		factors := expr.MulE(expr.To(array.Int32, f[1].At(term)), expr.To(array.Int32, f[2].At(at)))
		return ir.Nest(ir.Serial, ir.Nest(ir.Vector, ir.Block{ir.Add(f[0].Buffer, column, factors)}, column), term)
	}, ir.Flat("sums", array.Int32, block), ir.Flat("inputs", d, block), ir.Flat("weights", array.Int8, rows))
	return i
}

// repeated returns the call of an instruction that loops repeat.
func repeated(i *ir.Instruction, immediates []expr.Expr, loops string, args ...ir.Arg) *ir.Call {
	places := strings.TrimSuffix(strings.Repeat("vta_at(vta, %s), ", len(i.Params)), ", ")
	i.Text = fmt.Sprintf("vta_compute(vta, &vta_%s, (struct vta_place[]){%s}, (double[VTA_IMMEDIATES]){%s}, %s);", i.Name, places, numbers(immediates), loops)
	return ir.Exec(i, args...)
}

// numbers returns constants in C.
func numbers(constants []expr.Expr) string {
	if len(constants) == 0 {
		return "0"
	}
	list := make([]string, len(constants))
	for k, c := range constants {
		switch n := c.(type) {
		case *expr.Int:
			list[k] = fmt.Sprint(n.Value)
		case *expr.Float:
			list[k] = cprint.FloatLiteral(n.Value, array.Float64)
		}
	}
	return strings.Join(list, ", ")
}

// Instructions that order the units. The operand is a buffer whose slots they pass on.
var (
	acquire = token("acquire", "load")
	publish = token("publish", "load")
	await   = token("await", "compute")
	release = token("release", "compute")
	// Those of results, which the store unit reads.
	acquireResults = token("acquire", "compute")
	publishResults = token("publish", "compute")
	awaitResults   = token("await", "store")
	releaseResults = token("release", "store")
)

// token returns an instruction of a unit.
func token(name, unit string) *ir.Instruction {
	return &ir.Instruction{Name: unit + "." + name, Orders: true,
		Params: []ir.Param{{Name: "ring", Use: ir.Ordered, In: ir.Shared, Form: ir.Named}},
		Text:   fmt.Sprintf("vta_%s(vta, VTA_%s, %%s);", name, strings.ToUpper(unit))}
}
