package expr

import "github.com/tilth-dev/tilth/compiler/array"

// Expr is a scalar expression. Index arithmetic and conditions are Int64 and Bool expressions like any other.
// Nodes are immutable once built and may be shared.
type Expr interface {
	// DType is the type of the value.
	DType() array.DType
}

// Node is an expression of a kind that another package has, such as those of lowered programs.
type Node interface {
	Expr
	// Operands are the expressions that the node is made of, in the order in which they are computed.
	Operands() []Expr
	// Map is the node with each operand replaced by what f makes of it.
	Map(f func(Expr) Expr) Expr
}

// Var is an integer variable: an axis of a tensor or a loop of a lowered program. Its identity is its address.
type Var struct {
	Name string
	// Extent is the number of values, 0 <= v < Extent; 0 when unknown.
	Extent int64
	// Limit is, for an axis that is open, how many of the values an execution has, at most Extent: a number made of
	// integers and scalar inputs. It is nil for an axis that always has all of them. Elements of a tensor beyond the
	// limit of an axis are never used, and have any value; a reduction has no terms beyond that of its axis.
	Limit Expr
}

// Int is an integer or boolean constant.
type Int struct {
	Value int64
	Type  array.DType
}

// Float is a floating point constant.
type Float struct {
	Value float64
	Type  array.DType
}

// Load reads one element of a tensor. Index has one Int64 expression per dimension.
type Load struct {
	Tensor *Tensor
	Index  []Expr
}

// Binary applies a two-operand operator; both operands have the same type. Bin makes one.
type Binary struct {
	Op    BinaryOp
	A, B  Expr
	dtype array.DType
}

// Unary applies a one-operand operator. Un makes one.
type Unary struct {
	Op    UnaryOp
	A     Expr
	dtype array.DType
}

// Select is A where Cond holds and B elsewhere. Only the chosen side is evaluated, so a load in A may be out of
// bounds where Cond is false. Sel makes one.
type Select struct {
	Cond, A, B Expr
	dtype      array.DType
}

// Cast converts between types: anything to Bool tests for non-zero, integers wrap, and floating point to integer
// truncates toward zero. A floating point value beyond 32 bits (64 for Int64, Uint32 and Uint64) first becomes the
// nearest integer of that size, signed but for Uint64; NaN becomes zero.
type Cast struct {
	Type array.DType
	A    Expr
}

// DType is Int64.
func (*Var) DType() array.DType { return array.Int64 }

// DType is the constant's type.
func (e *Int) DType() array.DType { return e.Type }

// DType is the constant's type.
func (e *Float) DType() array.DType { return e.Type }

// DType is the tensor's element type.
func (e *Load) DType() array.DType { return e.Tensor.DType }

// DType is Bool for comparisons and the operands' type otherwise.
func (e *Binary) DType() array.DType { return e.dtype }

// DType is the operand's type; Bool for the tests IsNaN and IsInf.
func (e *Unary) DType() array.DType { return e.dtype }

// DType is that of the two sides.
func (e *Select) DType() array.DType { return e.dtype }

// DType is the type converted to.
func (e *Cast) DType() array.DType { return e.Type }

// BinaryOp is the operator of a Binary.
type BinaryOp uint8

// The binary operators. Div truncates toward zero on integers; FloorDiv and FloorMod round toward minus infinity and
// are what index arithmetic uses. Mod has the sign of the dividend (C's % and fmod). Integers wrap around; divisions
// of them and remainders by zero are zero, and shifts by more than their bits leave the sign. Min and Max of NaN are
// NaN.
const (
	Add BinaryOp = iota + 1
	Sub
	Mul
	Div
	FloorDiv
	FloorMod
	Mod
	Min
	Max
	Pow
	And
	Or
	Xor
	ShiftLeft
	ShiftRight
	Lt
	Le
	Eq
	Ne
)

// IsComparison reports whether the result is Bool whatever the operands' type.
func (op BinaryOp) IsComparison() bool { return op >= Lt && op <= Ne }

// UnaryOp is the operator of a Unary.
type UnaryOp uint8

// The unary operators. Round rounds halves to even. Not is logical on Bool and bitwise on integers.
const (
	Neg UnaryOp = iota + 1
	Abs
	Not
	Exp
	Log
	Sqrt
	Rsqrt
	Tanh
	Erf
	Floor
	Ceil
	Round
	Sin
	Cos
	Tan
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Asinh
	Acosh
	Atanh
	IsNaN
	IsInf
)

var binaryNames = [...]string{
	Add: "add", Sub: "sub", Mul: "mul", Div: "div", FloorDiv: "floordiv", FloorMod: "floormod", Mod: "mod", Min: "min", Max: "max",
	Pow: "pow", And: "and", Or: "or", Xor: "xor", ShiftLeft: "shl", ShiftRight: "shr", Lt: "lt", Le: "le", Eq: "eq", Ne: "ne",
}

var unaryNames = [...]string{
	Neg: "neg", Abs: "abs", Not: "not", Exp: "exp", Log: "log", Sqrt: "sqrt", Rsqrt: "rsqrt", Tanh: "tanh", Erf: "erf",
	Floor: "floor", Ceil: "ceil", Round: "round", Sin: "sin", Cos: "cos", Tan: "tan", Asin: "asin", Acos: "acos", Atan: "atan",
	Sinh: "sinh", Cosh: "cosh", Asinh: "asinh", Acosh: "acosh", Atanh: "atanh", IsNaN: "isnan", IsInf: "isinf",
}

// Work is what an operator asks of a machine, which costs are made of.
type Work uint8

// The kinds of work: a few cycles; a division or a root; a function that is computed by a polynomial or a library.
const (
	Simple Work = iota
	Division
	Transcendental
)

var binaryWork = [...]Work{
	Add: Simple, Sub: Simple, Mul: Simple, Div: Division, FloorDiv: Division, FloorMod: Division, Mod: Division, Min: Simple,
	Max: Simple, Pow: Transcendental, And: Simple, Or: Simple, Xor: Simple, ShiftLeft: Simple, ShiftRight: Simple, Lt: Simple,
	Le: Simple, Eq: Simple, Ne: Simple,
}

var unaryWork = [...]Work{
	Neg: Simple, Abs: Simple, Not: Simple, Exp: Transcendental, Log: Transcendental, Sqrt: Division, Rsqrt: Division,
	Tanh: Transcendental, Erf: Transcendental, Floor: Simple, Ceil: Simple, Round: Simple, Sin: Transcendental,
	Cos: Transcendental, Tan: Transcendental, Asin: Transcendental, Acos: Transcendental, Atan: Transcendental,
	Sinh: Transcendental, Cosh: Transcendental, Asinh: Transcendental, Acosh: Transcendental, Atanh: Transcendental,
	IsNaN: Simple, IsInf: Simple,
}

// Work is what the operator asks of a machine.
func (op BinaryOp) Work() Work { return binaryWork[op] }

// Work is what the operator asks of a machine.
func (op UnaryOp) Work() Work { return unaryWork[op] }

// String is the operator's name in the canonical text.
func (op BinaryOp) String() string { return binaryNames[op] }

// String is the operator's name in the canonical text.
func (op UnaryOp) String() string { return unaryNames[op] }
