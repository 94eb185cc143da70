package kerneltest

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// dag draws a workload stage by stage.
type dag struct {
	t       *rapid.T
	tensors []*expr.Tensor
	args    []*expr.Tensor
}

// maxTestElements keeps the tensors of drawn workloads small enough for hundreds of runs per second.
const maxTestElements = 1500

func (g *dag) int(label string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(g.t, label) }

func (g *dag) source(d array.DType, constant bool, shape ...int64) *expr.Tensor {
	t := expr.NewInput(fmt.Sprintf("x%d", len(g.args)), d, shape...)
	if constant {
		t.Role = expr.Constant
	}
	g.args = append(g.args, t)
	return t
}

func (g *dag) add(t *expr.Tensor) *expr.Tensor {
	g.tensors = append(g.tensors, t)
	return t
}

// DrawWorkload draws a small workload of any kind that operators make.
func DrawWorkload(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	kinds := []func(){g.random, g.conv, g.depthwise, g.matmul, g.integerProduct, g.pool, g.softmax, g.normalized, g.normalized, g.attention}
	rapid.SampledFrom(kinds).Draw(t, "kind")()
	// Sometimes one or two stages follow it.
	for range g.int("epilogue", 0, 2) {
		g.step()
	}
	outputs := []*expr.Tensor{g.tensors[len(g.tensors)-1]}
	if len(g.tensors) > 1 && rapid.Bool().Draw(t, "second output") {
		k := rapid.IntRange(0, len(g.tensors)-2).Draw(t, "which")
		if g.tensors[k].Role == expr.Computed {
			outputs = append(outputs, g.tensors[k])
		}
	}
	w := workloadOf(t, outputs...)
	if rapid.IntRange(0, 2).Draw(t, "parts") == 0 {
		g.makeParts(w)
	}
	return w
}

// makeParts makes inputs and outputs parts of larger tensors.
func (g *dag) makeParts(w *expr.Workload) {
	for _, a := range w.Args() {
		if a.Role == expr.Constant || !rapid.Bool().Draw(g.t, "part") {
			continue
		}
		a.Strides = make([]int64, len(a.Shape))
		step := int64(1)
		for k := len(a.Shape) - 1; k >= 0; k-- {
			a.Strides[k] = step
			step *= a.Shape[k] + g.int("gap", 0, 3)*g.int("has gap", 0, 1)
		}
	}
}

var testDTypes = []array.DType{array.Float32, array.Float32, array.Float64, array.Float16, array.BFloat16, array.Int8, array.Int16, array.Int32,
	array.Int64, array.Uint8, array.Uint16, array.Uint32, array.Uint64, array.Bool}

func (g *dag) dtype() array.DType { return rapid.SampledFrom(testDTypes).Draw(g.t, "dtype") }

// random draws a chain of element-wise, moving and reducing stages.
func (g *dag) random() {
	rank := g.int("rank", 1, 3)
	shape := make([]int64, rank)
	for k := range shape {
		shape[k] = g.int("extent", 1, 20)
		if array.Elements(shape[:k+1]) > maxTestElements {
			shape[k] = 1
		}
	}
	g.tensors = append(g.tensors, g.source(g.dtype(), false, shape...))
	for range g.int("stages", 1, 4) {
		g.step()
	}
}

// step adds a stage that reads an existing tensor.
func (g *dag) step() {
	x := g.tensors[rapid.IntRange(0, len(g.tensors)-1).Draw(g.t, "tensor")]
	if rapid.Bool().Draw(g.t, "latest") {
		x = g.tensors[len(g.tensors)-1]
	}
	steps := []func(*expr.Tensor) *expr.Tensor{g.unary, g.binary, g.transpose, g.slice, g.padded, g.reshape, g.concat, g.reduce, g.window, g.condition, g.gather, g.upsample}
	g.add(rapid.SampledFrom(steps).Draw(g.t, "step")(x))
}

func name(g *dag) string { return fmt.Sprintf("s%d", len(g.tensors)) }

func (g *dag) unary(x *expr.Tensor) *expr.Tensor {
	return expr.Compute(name(g), x.Shape, func(i []expr.Expr) expr.Expr { return g.unaryExpr(x.At(i...)) })
}

func (g *dag) unaryExpr(v expr.Expr) expr.Expr {
	d := v.DType()
	switch {
	case d == array.Bool:
		return expr.Un(expr.Not, v)
	case d.IsInt():
		choices := []func() expr.Expr{
			func() expr.Expr { return expr.AddE(v, expr.F(d, 3)) },
			func() expr.Expr { return expr.Un(expr.Abs, v) },
			func() expr.Expr { return expr.Bin(expr.FloorDiv, v, expr.F(d, 3)) },
			func() expr.Expr { return expr.Bin(expr.FloorMod, v, expr.F(d, 3)) },
			func() expr.Expr { return expr.Bin(expr.Mod, v, expr.F(d, 3)) },
			func() expr.Expr { return expr.Bin(expr.Div, v, expr.F(d, 3)) },
			func() expr.Expr { return expr.MaxE(v, expr.F(d, 1)) },
			func() expr.Expr { return expr.To(array.Float32, v) },
			func() expr.Expr { return expr.To(array.Uint8, v) },
			func() expr.Expr { return expr.To(array.Bool, v) },
			func() expr.Expr { return expr.Bin(expr.Xor, v, expr.F(d, 5)) },
			func() expr.Expr { return expr.Un(expr.Not, v) },
		}
		return rapid.SampledFrom(choices).Draw(g.t, "op")()
	}
	bounded := expr.MaxE(expr.MinE(v, expr.F(d, 4)), expr.F(d, -4))
	choices := []func() expr.Expr{
		func() expr.Expr { return expr.MaxE(v, expr.Zero(d)) },
		func() expr.Expr { return expr.AddE(v, expr.F(d, 0.5)) },
		func() expr.Expr { return expr.Un(expr.Exp, bounded) },
		func() expr.Expr { return expr.Un(expr.Tanh, bounded) },
		// The root has a bounded slope: cancellation leaves a rounding error, which a root at zero would magnify.
		func() expr.Expr { return expr.Un(expr.Sqrt, expr.AddE(expr.Un(expr.Abs, v), expr.F(d, 0.0625))) },
		func() expr.Expr { return expr.Un(expr.Erf, bounded) },
		func() expr.Expr { return expr.DivE(v, expr.F(d, 4)) },
		func() expr.Expr { return expr.Un(expr.Neg, v) },
		func() expr.Expr {
			return expr.DivE(expr.F(d, 1), expr.AddE(expr.F(d, 1), expr.Un(expr.Exp, bounded)))
		},
		func() expr.Expr { return expr.To(array.Float64, v) },
		func() expr.Expr { return expr.To(array.Float32, v) },
		func() expr.Expr { return expr.Un(expr.IsNaN, v) },
	}
	return rapid.SampledFrom(choices).Draw(g.t, "op")()
}

// binary combines x with a tensor that broadcasts to its shape.
func (g *dag) binary(x *expr.Tensor) *expr.Tensor {
	shape := append([]int64{}, x.Shape...)
	for k := range shape {
		if rapid.Bool().Draw(g.t, "broadcast") {
			shape[k] = 1
		}
	}
	y := g.source(x.DType, rapid.Bool().Draw(g.t, "constant"), shape...)
	ops := []expr.BinaryOp{expr.Add, expr.Sub, expr.Mul, expr.Max, expr.Min, expr.Lt, expr.Le, expr.Eq, expr.Ne}
	if x.DType == array.Bool {
		ops = []expr.BinaryOp{expr.And, expr.Or, expr.Xor, expr.Eq, expr.Ne}
	}
	op := rapid.SampledFrom(ops).Draw(g.t, "op")
	return expr.Compute(name(g), x.Shape, func(i []expr.Expr) expr.Expr {
		at := append([]expr.Expr{}, i...)
		for k := range at {
			if shape[k] == 1 {
				at[k] = expr.I(0)
			}
		}
		return expr.Bin(op, x.At(i...), y.At(at...))
	})
}

func (g *dag) transpose(x *expr.Tensor) *expr.Tensor {
	order := make([]int, len(x.Shape))
	for k := range order {
		order[k] = k
	}
	order = rapid.Permutation(order).Draw(g.t, "order")
	shape := make([]int64, len(order))
	for k, d := range order {
		shape[k] = x.Shape[d]
	}
	return expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		at := make([]expr.Expr, len(order))
		for k, d := range order {
			at[d] = i[k]
		}
		return x.At(at...)
	})
}

// slice reads x from an offset, with a stride, forwards or backwards.
func (g *dag) slice(x *expr.Tensor) *expr.Tensor {
	first, stride, shape := make([]int64, len(x.Shape)), make([]int64, len(x.Shape)), make([]int64, len(x.Shape))
	for k, e := range x.Shape {
		first[k], stride[k] = g.int("first", 0, e-1), g.int("stride", 1, 3)
		shape[k] = (e-1-first[k])/stride[k] + 1
		if rapid.Bool().Draw(g.t, "reverse") {
			first[k], stride[k] = e-1-first[k], -stride[k]
		}
	}
	return expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		at := make([]expr.Expr, len(i))
		for k := range at {
			at[k] = expr.AddE(expr.MulE(i[k], expr.I(stride[k])), expr.I(first[k]))
		}
		return x.At(at...)
	})
}

// inside returns the condition that every index is within the tensor's shape.
func inside(at []expr.Expr, shape []int64) expr.Expr {
	var cond expr.Expr = &expr.Int{Value: 1, Type: array.Bool}
	for k, i := range at {
		cond = expr.Bin(expr.And, cond, expr.InRange(i, 0, shape[k]))
	}
	return cond
}

func (g *dag) padded(x *expr.Tensor) *expr.Tensor {
	before, shape := make([]int64, len(x.Shape)), make([]int64, len(x.Shape))
	for k, e := range x.Shape {
		before[k] = g.int("before", 0, 2)
		shape[k] = e + before[k] + g.int("after", 0, 2)
	}
	return padTo(name(g), x, shape, before, expr.Zero(x.DType))
}

// padTo returns x in a larger shape, after the given number of elements of each dimension, with fill around it.
func padTo(name string, x *expr.Tensor, shape, before []int64, fill expr.Expr) *expr.Tensor {
	return expr.Compute(name, shape, func(i []expr.Expr) expr.Expr {
		at := make([]expr.Expr, len(i))
		for k := range at {
			at[k] = expr.SubE(i[k], expr.I(before[k]))
		}
		return expr.Sel(inside(at, x.Shape), x.At(at...), fill)
	})
}

// reshape flattens x and cuts it into rows.
func (g *dag) reshape(x *expr.Tensor) *expr.Tensor {
	n := array.Elements(x.Shape)
	columns := g.int("columns", 1, 8)
	for n%columns != 0 {
		columns--
	}
	return expr.Compute(name(g), []int64{n / columns, columns}, func(i []expr.Expr) expr.Expr {
		flat := expr.AddE(expr.MulE(i[0], expr.I(columns)), i[1])
		at := make([]expr.Expr, len(x.Shape))
		for k := len(at) - 1; k >= 0; k-- {
			at[k] = expr.Bin(expr.FloorMod, flat, expr.I(x.Shape[k]))
			flat = expr.Bin(expr.FloorDiv, flat, expr.I(x.Shape[k]))
		}
		return x.At(at...)
	})
}

func (g *dag) concat(x *expr.Tensor) *expr.Tensor {
	axis := rapid.IntRange(0, len(x.Shape)-1).Draw(g.t, "axis")
	other := append([]int64{}, x.Shape...)
	other[axis] = g.int("more", 1, 5)
	y := g.source(x.DType, false, other...)
	shape := append([]int64{}, x.Shape...)
	shape[axis] += other[axis]
	return expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		at := append([]expr.Expr{}, i...)
		at[axis] = expr.SubE(i[axis], expr.I(x.Shape[axis]))
		return expr.Sel(expr.Bin(expr.Lt, i[axis], expr.I(x.Shape[axis])), x.At(i...), y.At(at...))
	})
}

func (g *dag) combiner(d array.DType) expr.Combiner {
	if d.IsFloat() || d == array.Int64 {
		return rapid.SampledFrom([]expr.Combiner{expr.Sum, expr.Maximum, expr.Minimum}).Draw(g.t, "combiner")
	}
	return rapid.SampledFrom([]expr.Combiner{expr.Maximum, expr.Minimum}).Draw(g.t, "combiner")
}

// numeric returns v, or its number if it is a Bool.
func numeric(v expr.Expr) expr.Expr {
	if v.DType() == array.Bool {
		return expr.To(array.Int64, v)
	}
	return v
}

// reduce combines x over one of its dimensions.
func (g *dag) reduce(x *expr.Tensor) *expr.Tensor {
	axis := rapid.IntRange(0, len(x.Shape)-1).Draw(g.t, "axis")
	shape := append(append([]int64{}, x.Shape[:axis]...), x.Shape[axis+1:]...)
	if len(shape) == 0 {
		shape = []int64{1}
	}
	return expr.ReduceOver(name(g), g.combiner(numericType(x.DType)), shape, x.Shape[axis:axis+1], func(i, r []expr.Expr) expr.Expr {
		at := append(append(append([]expr.Expr{}, i[:axis]...), r[0]), i[axis:]...)
		return numeric(x.At(at[:len(x.Shape)]...))
	})
}

func numericType(d array.DType) array.DType {
	if d == array.Bool {
		return array.Int64
	}
	return d
}

// window combines neighbourhoods of x along one dimension.
func (g *dag) window(x *expr.Tensor) *expr.Tensor {
	axis := rapid.IntRange(0, len(x.Shape)-1).Draw(g.t, "axis")
	size, stride := g.int("size", 1, min(4, x.Shape[axis])), g.int("stride", 1, 2)
	shape := append([]int64{}, x.Shape...)
	shape[axis] = (x.Shape[axis]-size)/stride + 1
	return expr.ReduceOver(name(g), g.combiner(numericType(x.DType)), shape, []int64{size}, func(i, r []expr.Expr) expr.Expr {
		at := append([]expr.Expr{}, i...)
		at[axis] = expr.AddE(expr.MulE(i[axis], expr.I(stride)), r[0])
		return numeric(x.At(at...))
	})
}

// condition chooses by a mask.
func (g *dag) condition(x *expr.Tensor) *expr.Tensor {
	mask := g.source(array.Bool, false, x.Shape...)
	return expr.Compute(name(g), x.Shape, func(i []expr.Expr) expr.Expr {
		return expr.Sel(mask.At(i...), x.At(i...), expr.Zero(x.DType))
	})
}

// gather reads rows whose numbers are data.
func (g *dag) gather(x *expr.Tensor) *expr.Tensor {
	n := g.int("rows", 1, 6)
	rows := g.source(array.Int64, rapid.Bool().Draw(g.t, "constant"), n)
	shape := append([]int64{n}, x.Shape[1:]...)
	return expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		row := expr.Bin(expr.FloorMod, rows.At(i[0]), expr.I(x.Shape[0]))
		return x.At(append([]expr.Expr{row}, i[1:]...)...)
	})
}

func (g *dag) upsample(x *expr.Tensor) *expr.Tensor {
	shape := append([]int64{}, x.Shape...)
	if last := len(shape) - 1; array.Elements(shape) < maxTestElements/2 {
		shape[last] *= 2
	}
	return expr.Compute(name(g), shape, func(i []expr.Expr) expr.Expr {
		at := append([]expr.Expr{}, i...)
		at[len(at)-1] = expr.Bin(expr.FloorDiv, i[len(at)-1], expr.I(max(1, shape[len(at)-1]/x.Shape[len(at)-1])))
		return x.At(at...)
	})
}
