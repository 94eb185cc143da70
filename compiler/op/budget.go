package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// MaxNodes limits the nodes of a model after loop unrolling and function inlining.
const MaxNodes = 1 << 18

// Limits bounds the cost of reading a model, whatever its file contains: nodes; bytes of constants, tables, nodes
// and names, many of them short-lived; and scalar operations to compute them.
type Limits struct{ Nodes, Bytes, Steps int64 }

// DefaultLimits are far above the needs of legitimate models.
var DefaultLimits = Limits{Nodes: MaxNodes, Bytes: 512 << 20, Steps: 1 << 36}

// bytesPerByte and stepsPerByte raise the limits per byte of constant data in the file, since copies of weights in
// other types and layouts are proportional to it.
const bytesPerByte, stepsPerByte = 8, 256

// Budget is the remaining allowance for reading a model. It is charged before memory is allocated, by every step
// that can multiply the size of a file: constant folding, tables that operators compute, unrolled loops, inlined
// functions, and passes that join or rearrange weights. A nil budget is unlimited; it is for operators that do not
// come from a file.
type Budget struct {
	// left is the remainder of whole.
	left, whole Limits
	given       int64
	name, op    string
}

// NewBudget returns the budget of a model whose file has the given bytes of constant data.
func NewBudget(l Limits, given int64) *Budget {
	l.Bytes += bytesPerByte * given
	l.Steps += stepsPerByte * given
	return &Budget{left: l, whole: l, given: given}
}

// overBudget is the panic value of an exhausted Budget; Catch converts it to an error.
type overBudget struct{ error }

// Catch sets err if the budget was exhausted by a callee. Callers that read a model must defer it.
func (b *Budget) Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case overBudget:
		*err = fmt.Errorf("node %q (%s): %w", b.name, b.op, r.error)
	default:
		panic(r)
	}
}

// For names the node for subsequent charges.
func (b *Budget) For(name, op string) {
	if b != nil {
		b.name, b.op = name, op
	}
}

// Node charges one node.
func (b *Budget) Node() {
	if b == nil {
		return
	}
	if b.left.Nodes--; b.left.Nodes < 0 {
		panic(overBudget{fmt.Errorf("the model has more than %d nodes with its loops unrolled and its functions inlined: "+
			"shorten the loops", b.whole.Nodes)})
	}
}

// Bytes charges memory, before it is allocated.
func (b *Budget) Bytes(size int64) {
	if b == nil {
		return
	}
	if size < 0 || size > b.left.Bytes {
		panic(overBudget{fmt.Errorf("reading the model takes more than %d MiB, for %d bytes of "+
			"constants in its file: compute large constants before the export and store them in the model",
			b.whole.Bytes>>20, b.given)})
	}
	b.left.Bytes -= size
}

// Steps charges scalar operations, before they are executed.
func (b *Budget) Steps(count float64) {
	if b == nil {
		return
	}
	if !(count <= float64(b.left.Steps)) {
		panic(overBudget{fmt.Errorf("computing the model's constants takes more than %.1g operations: compute large "+
			"constants before the export and store them in the model", float64(b.whole.Steps))})
	}
	b.left.Steps -= int64(count)
}

// array charges for an array and returns it, filled with zeros. The extents are not negative.
func (b *Budget) array(d array.DType, shape ...int64) *array.Array {
	b.reserve(d, shape)
	return array.New(d, shape...)
}

// reserve charges the memory of an array.
func (b *Budget) reserve(d array.DType, shape []int64) {
	size, err := array.CheckedBytes(d, shape)
	if err != nil {
		size = -1
	}
	b.Bytes(size)
}

// ints returns a list of integers as an array.
func (b *Budget) ints(values []int64, shape ...int64) *array.Array {
	b.Bytes(8 * int64(len(values)))
	return array.FromInt64(values, shape...)
}
