package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// MaxNodes bounds the nodes of a model with its loops unrolled and its functions inlined.
const MaxNodes = 1 << 18

// Limits are what a model may cost while it is read, whatever its file says: nodes; bytes of constants, tables, nodes
// and names, of which many are garbage soon; and scalar operations to compute them.
type Limits struct{ Nodes, Bytes, Steps int64 }

// DefaultLimits are far above what models need that are no attack.
var DefaultLimits = Limits{Nodes: MaxNodes, Bytes: 512 << 20, Steps: 1 << 36}

// Each byte of constant data in the file allows for more, since copies of weights in other types and layouts are in
// proportion to them.
const bytesPerByte, stepsPerByte = 8, 256

// Budget is what reading a model may still cost. It is charged before memory is taken, by everything that can multiply
// the size of a file: constant folding, tables that operators compute, unrolled loops, inlined functions, and passes
// that join or rearrange weights. A nil budget has no bound: it is for operators that no file asks for.
type Budget struct {
	// left is what is left of whole.
	left, whole Limits
	given       int64
	name, op    string
}

// NewBudget is the budget of a model whose file has the given bytes of constant data.
func NewBudget(l Limits, given int64) *Budget {
	l.Bytes += bytesPerByte * given
	l.Steps += stepsPerByte * given
	return &Budget{left: l, whole: l, given: given}
}

// overBudget is the panic of a Budget that is spent; Catch makes an error of it.
type overBudget struct{ error }

// Catch sets err when the budget was overdrawn below. Who reads a model defers it.
func (b *Budget) Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case overBudget:
		*err = fmt.Errorf("node %q (%s): %w", b.name, b.op, r.error)
	default:
		panic(r)
	}
}

// For names the node that is charged from here on.
func (b *Budget) For(name, op string) {
	if b != nil {
		b.name, b.op = name, op
	}
}

// Node takes one node.
func (b *Budget) Node() {
	if b == nil {
		return
	}
	if b.left.Nodes--; b.left.Nodes < 0 {
		panic(overBudget{fmt.Errorf("the model has more than %d nodes with its loops unrolled and its functions inlined: "+
			"shorten the loops", b.whole.Nodes)})
	}
}

// Bytes takes memory, before it is allocated.
func (b *Budget) Bytes(size int64) {
	if b == nil {
		return
	}
	if size < 0 || size > b.left.Bytes {
		panic(overBudget{fmt.Errorf("what is computed while the model is read takes more than %d MiB, for %d bytes of "+
			"constants in its file: compute large constants before the export and store them in the model",
			b.whole.Bytes>>20, b.given)})
	}
	b.left.Bytes -= size
}

// Steps takes scalar operations, before they are done.
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

// array takes the memory of an array and returns it, of zeros. The extents are not negative.
func (b *Budget) array(d array.DType, shape ...int64) *array.Array {
	b.reserve(d, shape)
	return array.New(d, shape...)
}

// reserve takes the memory of an array.
func (b *Budget) reserve(d array.DType, shape []int64) {
	size, err := array.CheckedBytes(d, shape)
	if err != nil {
		size = -1
	}
	b.Bytes(size)
}

// ints is a list of integers as an array.
func (b *Budget) ints(values []int64, shape ...int64) *array.Array {
	b.Bytes(8 * int64(len(values)))
	return array.FromInt64(values, shape...)
}
