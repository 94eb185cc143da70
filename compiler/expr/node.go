package expr

import "github.com/tilth-dev/tilth/compiler/array"

// Expr is a scalar expression. Index arithmetic and conditions are ordinary Int64 and Bool expressions. Nodes are
// immutable and may be shared.
type Expr interface {
	// DType returns the type of the value.
	DType() array.DType
}

// Node is an expression kind defined in another package, such as those of lowered programs.
type Node interface {
	Expr
	// Operands returns the operands of the node in evaluation order.
	Operands() []Expr
	// Map returns the node with f applied to each operand.
	Map(f func(Expr) Expr) Expr
}

// Var is an integer variable: an axis of a tensor or a loop of a lowered program. It is identified by its address.
type Var struct {
	Name string
	// Extent is the number of values, 0 <= v < Extent; 0 if unknown.
	Extent int64
	// Limit is, for an open axis, the number of values in an execution, at most Extent: an expression of integers
	// and scalar inputs. It is nil for an axis of fixed extent. Elements of a tensor beyond the limit of an axis
	// are never used and undefined; a reduction has no terms beyond that of its axis.
	Limit Expr
}

// Int is an integer or boolean constant.
type Int struct {
	Value int64
	Type  array.DType
}

// Float is a floating-point constant.
type Float struct {
	Value float64
	Type  array.DType
}

// Load reads one element of a tensor. Index has one Int64 expression per dimension.
type Load struct {
	Tensor *Tensor
	Index  []Expr
}

// Binary applies a two-operand operator; both operands have the same type. Create it with Bin.
type Binary struct {
	Op   BinaryOp
	A, B Expr
	// Fused is set for a sum or difference that does not round B if it is a product, where the target has an
	// instruction for both. Create it with FusedBin.
	Fused bool
	dtype array.DType
}

// Unary applies a one-operand operator. Create it with Un.
type Unary struct {
	Op    UnaryOp
	A     Expr
	dtype array.DType
}

// Select is A if Cond holds and B otherwise. Only the chosen side is evaluated, so a load in A may be out of bounds
// if Cond is false. Create it with Sel.
type Select struct {
	Cond, A, B Expr
	dtype      array.DType
}

// Cast converts between types: conversions to Bool test for nonzero, integers wrap, and floating point to integer
// truncates toward zero. A floating-point value beyond 32 bits (64 for Int64, Uint32 and Uint64) first becomes the
// nearest integer of that size, signed except for Uint64; NaN becomes zero.
type Cast struct {
	Type array.DType
	A    Expr
}

// DType returns Int64.
func (*Var) DType() array.DType { return array.Int64 }

// DType returns the constant's type.
func (e *Int) DType() array.DType { return e.Type }

// DType returns the constant's type.
func (e *Float) DType() array.DType { return e.Type }

// DType returns the tensor's element type.
func (e *Load) DType() array.DType { return e.Tensor.DType }

// DType returns Bool for comparisons and the operands' type otherwise.
func (n *Binary) DType() array.DType { return n.dtype }

// DType returns the operand's type; Bool for the tests IsNaN and IsInf.
func (e *Unary) DType() array.DType { return e.dtype }

// DType returns the type of the two sides.
func (e *Select) DType() array.DType { return e.dtype }

// DType returns the target type.
func (e *Cast) DType() array.DType { return e.Type }

// BinaryOp is the operator of a Binary.
type BinaryOp uint8

// The binary operators. Div truncates toward zero on integers; FloorDiv and FloorMod round toward minus infinity and
// are used in index arithmetic. Mod has the sign of the dividend (C's % and fmod). Integers wrap around; divisions and
// remainders by zero are zero, and shifts beyond the width leave the sign. Min and Max of NaN are NaN.
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

// IsComparison reports whether the result is Bool for any operand type.
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

// Work classifies the cost of an operator.
type Work uint8

// The classes of work: a few cycles; a division or a root; a function computed by a polynomial or a library.
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

// Work returns the cost class of the operator.
func (op BinaryOp) Work() Work { return binaryWork[op] }

// Work returns the cost class of the operator.
func (op UnaryOp) Work() Work { return unaryWork[op] }

// String returns the operator's name in the canonical text.
func (op BinaryOp) String() string { return binaryNames[op] }

// String returns the operator's name in the canonical text.
func (op UnaryOp) String() string { return unaryNames[op] }
