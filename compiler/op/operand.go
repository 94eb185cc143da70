package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Operand is a value inside a kernel: a tensor in memory, a constant with a layout chosen by its reader, or
// expressions that are computed where they are read.
type Operand struct {
	// Type is the type seen by operators. Elements in memory may have fewer bits: those of the tensor, or of the
	// constant.
	Type
	// Layout is the memory order of the axes, or the natural one of a value that is not in memory.
	Layout []int
	// Tensor is set if the value is in memory.
	Tensor *expr.Tensor
	// Const is set for constants.
	Const *array.Array

	id int
	at func(i []expr.Expr) expr.Expr
}

// At returns the element at an index by the value's own axes.
func (o Operand) At(i ...expr.Expr) expr.Expr {
	if len(i) != o.Shape.Rank() {
		panic(fmt.Sprintf("op: %d indices into %v", len(i), o.Type))
	}
	if o.Tensor == nil {
		return o.at(i)
	}
	index := make([]expr.Expr, len(o.Layout))
	for k, axis := range o.Layout {
		index[k] = i[axis]
	}
	return expr.To(o.DType, o.Tensor.At(index...))
}

// inMemory returns the operand with the type of its elements in memory, for stages that only move them.
func (o Operand) inMemory() Operand {
	if o.Tensor != nil {
		o.DType = o.Tensor.DType
	}
	return o
}

// computed reports whether the value is computed inside the kernel.
func (o Operand) computed() bool {
	return o.Const == nil && (o.Tensor == nil || o.Tensor.Role == expr.Computed)
}

// Arg is the meaning of a kernel's argument: the value id that was given to Input or Constant, in a layout; or Made.
type Arg struct {
	ID     int
	Layout []int
	// Made is set for a constant that an operator computed from others: its elements in memory order.
	Made *array.Array
	// Symbol is set for the count of an open extent.
	Symbol *extent.Symbol
	// Shape is that of an input, in memory order.
	Shape extent.Shape
}

// Lowering collects the inputs of the operators of one kernel.
type Lowering struct {
	// Args maps each input and constant tensor to the source of its elements.
	Args map[*expr.Tensor]Arg
	// Extents holds the extents of open axes.
	Extents map[*expr.Var]extent.Extent
	counts  map[*extent.Symbol]*expr.Tensor
	bound   map[string]*expr.Tensor
	known   map[int]*array.Array
	// whole is set to compute all elements of stages, up to the most of open extents.
	whole bool
	// budget is charged for computation at compile time.
	budget *Budget
}

// NewLowering starts a kernel; its constants are charged to the budget.
func NewLowering(b *Budget) *Lowering {
	return &Lowering{
		Args: map[*expr.Tensor]Arg{}, Extents: map[*expr.Var]extent.Extent{}, counts: map[*extent.Symbol]*expr.Tensor{}, bound: map[string]*expr.Tensor{},
		known: map[int]*array.Array{}, budget: b,
	}
}

// Extent returns an extent as an expression of the counts of an execution.
func (l *Lowering) Extent(e extent.Extent) expr.Expr {
	return extent.Fold(e, expr.I, func(s *extent.Symbol) expr.Expr { return l.count(s).At() }, func(op extent.Op, a, b expr.Expr) expr.Expr {
		return expr.Bin(extentOps[op], a, b)
	})
}

var extentOps = [...]expr.BinaryOp{
	extent.Add: expr.Add, extent.Mul: expr.Mul, extent.FloorDiv: expr.FloorDiv, extent.Min: expr.Min, extent.Max: expr.Max,
}

// count returns the input that holds the units of a symbol in an execution.
func (l *Lowering) count(s *extent.Symbol) *expr.Tensor {
	t := l.counts[s]
	if t == nil {
		_, most := s.Units()
		t = expr.NewCount(s.Name, most)
		t.Points = s.Points
		l.counts[s], l.Args[t] = t, Arg{Symbol: s}
	}
	return t
}

// limitAxes sets the limits of a stage's axes.
func (l *Lowering) limitAxes(t *expr.Tensor, shape extent.Shape, layout []int) {
	if shape.IsOpen() && !l.whole {
		l.limit(t.Axes, shape.Permuted(layout))
	}
}

// limit sets the limits of the axes that have open extents.
func (l *Lowering) limit(vars []*expr.Var, shape extent.Shape) {
	for k, v := range vars {
		if e := shape.At(k); e.IsOpen() {
			v.Limit, l.Extents[v] = l.Extent(e), e
		}
	}
}

// Input returns an operand that each execution receives in memory in the given layout.
func (l *Lowering) Input(id int, name string, t Type, layout []int) Operand {
	tensor := l.bind(id, layout, func() *expr.Tensor {
		return expr.NewInput(name, t.DType, Physical(t.Shape.Max(), layout)...)
	})
	l.Args[tensor] = Arg{ID: id, Layout: slices.Clone(layout), Shape: t.Shape.Permuted(layout)}
	return Operand{Type: t, Layout: layout, Tensor: tensor, id: id}
}

// Constant returns an operand with known elements. If its shape is open, they are those for the most.
func (l *Lowering) Constant(id int, v Value) Operand {
	l.known[id] = v.Const
	return Operand{Type: Type{v.Const.DType, v.Shape}, Layout: RowMajor(v.Shape.Rank()), Const: v.Const, id: id}
}

// Made returns a constant that an operator computes from others at compile time.
func (l *Lowering) Made(a *array.Array) Operand {
	t := expr.NewConstant("constant", a.DType, a.Shape...)
	l.Args[t] = Arg{Made: a}
	return Operand{Type: Type{a.DType, extent.Fixed(a.Shape...)}, Layout: RowMajor(len(a.Shape)), Tensor: t}
}

// settle evaluates a row-major stage at compile time if it reads only constants.
func (l *Lowering) settle(o Operand) (Operand, error) {
	w, err := expr.NewWorkload([]*expr.Tensor{o.Tensor})
	if err != nil || len(w.Inputs) > 0 {
		return o, err
	}
	a, err := l.evaluate(w)
	if err != nil {
		return o, err
	}
	return l.Made(a), nil
}

// evaluate computes a workload of constants with one output.
func (l *Lowering) evaluate(w *expr.Workload) (*array.Array, error) {
	args := make([]*array.Array, len(w.Constants))
	for k, t := range w.Constants {
		arg := l.Args[t]
		if args[k] = arg.Made; arg.Made == nil {
			args[k] = l.budget.Arrange(l.known[arg.ID], arg.Layout)
		}
	}
	for _, t := range w.Stages {
		l.budget.reserve(t.DType, t.Shape)
		l.budget.Steps(stepsOf(t))
	}
	outs, err := expr.Evaluate(w, args)
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// stepsOf returns the number of scalar operations of a stage.
func stepsOf(t *expr.Tensor) float64 {
	steps := float64(expr.Size(t.Body))
	for _, v := range append(append([]*expr.Var{}, t.Axes...), t.Reduce...) {
		steps *= float64(v.Extent)
	}
	return steps
}

func (l *Lowering) bind(id int, layout []int, make func() *expr.Tensor) *expr.Tensor {
	key := fmt.Sprint(id, layout)
	if t := l.bound[key]; t != nil {
		return t
	}
	t := make()
	l.bound[key] = t
	l.Args[t] = Arg{ID: id, Layout: slices.Clone(layout)}
	return t
}

// Arrange sets the layout in which a constant is read, which may omit axes of extent 1. Other operands stay unchanged.
func (l *Lowering) Arrange(o Operand, layout []int) Operand {
	if o.Const == nil {
		return o
	}
	o.Tensor = l.bind(o.id, layout, func() *expr.Tensor {
		return expr.NewConstant("constant", o.Const.DType, Physical(o.Shape.Max(), layout)...)
	})
	o.Layout, o.Const = layout, nil
	return o
}

// Map adds a stage that computes each element of a value from its index.
func (l *Lowering) Map(name string, shape extent.Shape, layout []int, body func(i []expr.Expr) expr.Expr) Operand {
	t := expr.Compute(name, Physical(shape.Max(), layout), func(p []expr.Expr) expr.Expr { return body(logical(p, layout)) })
	l.limitAxes(t, shape, layout)
	return Operand{Type: Type{t.DType, shape}, Layout: layout, Tensor: t}
}

// Reduce adds a stage that combines terms over reduction axes of the given extents. Without terms, it is the neutral
// element.
func (l *Lowering) Reduce(name string, c expr.Combiner, shape extent.Shape, layout []int, over extent.Shape,
	body func(i, r []expr.Expr) expr.Expr) Operand {
	if over.IsEmpty() {
		d := body(variables(shape), variables(over)).DType()
		return l.Map(name, shape, layout, func([]expr.Expr) expr.Expr { return c.Identity(d) })
	}
	t := expr.ReduceOver(name, c, Physical(shape.Max(), layout), over.Max(), func(p, r []expr.Expr) expr.Expr {
		return body(logical(p, layout), r)
	})
	l.limitAxes(t, shape, layout)
	l.limit(t.Reduce, over)
	return Operand{Type: Type{t.DType, shape}, Layout: layout, Tensor: t}
}

// Lazy returns a value that is computed wherever it is read.
func (l *Lowering) Lazy(t Type, layout []int, at func(i []expr.Expr) expr.Expr) Operand {
	return Operand{Type: t, Layout: layout, at: at}
}

// Materialise stores a value in memory, in its own layout, unless it is there.
func (l *Lowering) Materialise(name string, o Operand) Operand {
	if o.Const != nil {
		return l.Arrange(o, o.Layout)
	}
	if o.Tensor != nil {
		return o
	}
	return l.Map(name, o.Shape, o.Layout, func(i []expr.Expr) expr.Expr { return narrowed(o.DType, o.at(i)) })
}

// variables returns an index of any position in a shape.
func variables(shape extent.Shape) []expr.Expr {
	index := make([]expr.Expr, shape.Rank())
	for k, n := range shape.Max() {
		index[k] = &expr.Var{Name: "i", Extent: max(n, 1)}
	}
	return index
}

// maxLazyNodes limits the expression of a value that is computed where it is read, far above those of real models.
const maxLazyNodes = 1 << 10

// bounded stores a value with a large expression in memory: a chain of operators that read their operand twice
// would double it at every link.
func (l *Lowering) bounded(o Operand) Operand {
	if o.Tensor != nil || o.Const != nil {
		return o
	}
	if expr.Size(o.At(variables(o.Shape)...)) <= maxLazyNodes {
		return o
	}
	return l.Materialise("part", o)
}

// Store returns the stage that writes a result as elements of a type: o itself if it was computed so in the wanted
// layout, or else a copy of it.
func (l *Lowering) Store(o Operand, d array.DType, layout []int) *expr.Tensor {
	o = l.Readable(o)
	if o.Tensor != nil && o.Tensor.Role == expr.Computed && o.Tensor.DType == d && slices.Equal(o.Layout, layout) {
		return o.Tensor
	}
	return l.Map("out", o.Shape, layout, func(i []expr.Expr) expr.Expr { return narrowed(d, o.At(i...)) }).Tensor
}

// narrowed returns an expression in a type. It drops preceding conversions from that type and back.
func narrowed(d array.DType, e expr.Expr) expr.Expr {
	if c, ok := e.(*expr.Cast); ok && c.Type == d {
		e = c.A
	}
	if c, ok := e.(*expr.Cast); ok && c.A.DType() == d && wideType(d) == c.Type {
		return c.A
	}
	return expr.To(d, e)
}

// rounded returns an expression rounded to a 16-bit floating-point type, as the type in which arithmetic is done.
// Unlike the result of an operator on that type, which may be more precise until it is stored, readers see the
// rounded value.
func rounded(d array.DType, e expr.Expr) expr.Expr { return expr.To(wideType(d), narrowed(d, e)) }

// Readable makes an operand usable with At: a constant gets its natural layout, or becomes a literal if it has one
// element.
func (l *Lowering) Readable(o Operand) Operand {
	if o.Const == nil {
		return o
	}
	if e, ok := literal(o); ok {
		return l.Lazy(o.Type, o.Layout, func([]expr.Expr) expr.Expr { return e })
	}
	return l.Arrange(o, o.Layout)
}

// literal returns the element of a constant with a single one.
func literal(o Operand) (expr.Expr, bool) {
	if o.Const == nil || o.Const.Len() != 1 {
		return nil, false
	}
	if o.DType.IsFloat() {
		return expr.F(o.DType, o.Const.Float(0)), true
	}
	return &expr.Int{Value: o.Const.Int(0), Type: o.DType}, true
}

// logical reorders the index expressions of a tensor to the value's axes.
func logical(p []expr.Expr, layout []int) []expr.Expr {
	i := make([]expr.Expr, len(p))
	for k, axis := range layout {
		i[axis] = p[k]
	}
	return i
}

// wide converts the 16-bit floating-point types to float32, in which arithmetic is done. It drops a preceding
// narrowing conversion.
func wide(e expr.Expr) expr.Expr {
	if d := e.DType(); d != array.Float16 && d != array.BFloat16 {
		return e
	}
	if c, ok := e.(*expr.Cast); ok && c.A.DType() == array.Float32 {
		return c.A
	}
	if f, ok := e.(*expr.Float); ok {
		return expr.F(array.Float32, f.Value)
	}
	return expr.To(array.Float32, e)
}

// exact is wide without dropping a narrowing conversion, for operators that jump: a comparison of two float16 sums
// must see them as rounded.
func exact(e expr.Expr) expr.Expr { return expr.To(wideType(e.DType()), e) }

// wideType returns the type in which arithmetic on d is done.
func wideType(d array.DType) array.DType {
	if d == array.Float16 || d == array.BFloat16 {
		return array.Float32
	}
	return d
}
