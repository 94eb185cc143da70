package layout

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Narrow returns the pass that stores float32 factors of products in a 16-bit type: half the bytes, in the operand
// type of matrix instructions. Operators still compute in float32, so that sums, softmax and normalisation lose no
// accuracy. Values are rounded once, when they are stored. The pass narrows
//
//   - weights and operands of products with at least minTerms terms, including attention, and the data of other
//     convolutions, which is read many times;
//   - values that are only moved, or reduced by maxima, before they become such operands.
//
// It keeps constants with elements beyond the type's range, inputs and outputs of the model, values that no product
// reads, and, if only constants are narrowed, all other values. All readers of a value read the rounded one.
func Narrow(as array.Storage) graph.Pass {
	return graph.Pass{Name: "store-as-" + as.Type.String(), Run: func(g *graph.Graph) error {
		narrowing := &narrowing{Graph: g, to: as.Type, constants: as.Constants, readers: g.Users(), members: map[*graph.Value][]*graph.Value{}, chosen: map[*graph.Value]bool{}}
		narrowing.run()
		return nil
	}}
}

// minTerms is the number of terms from which rounding factors pays: matrix instructions take as many 16-bit
// terms. Shorter sums, such as those that compute position frequencies, may need full precision.
const minTerms = 16

// narrowing selects memory by its root, the value that contains all others in it.
type narrowing struct {
	*graph.Graph
	to array.DType
	// constants is set if only constants are narrowed.
	constants bool
	readers   map[*graph.Value][]*graph.Node
	members   map[*graph.Value][]*graph.Value
	chosen    map[*graph.Value]bool
	// order lists the roots in order of selection, so that nothing depends on map order.
	order []*graph.Value
}

func (n *narrowing) run() {
	for _, node := range n.Nodes {
		root := rootOf(node.Result)
		n.members[root] = append(n.members[root], node.Result)
	}
	for _, node := range n.Nodes {
		for _, v := range narrowFactors(node) {
			n.choose(v)
		}
	}
	for _, node := range slices.Backward(n.Nodes) {
		if root := rootOf(node.Result); root == node.Result && n.onlyMoved(root) {
			n.choose(root)
		}
	}
	for _, root := range n.order {
		if root.Const != nil {
			n.Budget.Bytes(root.Const.Len() * n.to.Bytes())
			root.Const, root.Stored = root.Const.As(n.to), n.to
		}
		for _, v := range n.members[root] {
			v.Stored = n.to
		}
	}
}

// rootOf returns the value that contains another one's memory.
func rootOf(v *graph.Value) *graph.Value {
	for v.Within != nil {
		v = v.Within.Of
	}
	return v
}

// choose selects the memory of a value, unless it belongs to the model or has another type. Constants of one
// element are skipped.
func (n *narrowing) choose(v *graph.Value) {
	root := rootOf(v)
	if n.constants && root.Const == nil {
		return
	}
	if root.DType != array.Float32 || root.Producer == nil && root.Const == nil || root.Const != nil && root.Const.Len() == 1 ||
		n.IsOutput(root) || anyOutput(n.Graph, n.members[root]) {
		return
	}
	if root.Const != nil && !fits(root.Const, n.to) {
		return
	}
	if !n.chosen[root] {
		n.chosen[root], n.order = true, append(n.order, root)
	}
}

// maxFloat16 is the largest finite float16.
const maxFloat16 = 65504

// fits reports whether all elements of a constant are in the range of a type.
func fits(c *array.Array, to array.DType) bool {
	for k := int64(0); to == array.Float16 && k < c.Len(); k++ {
		if math.Abs(c.Float(k)) > maxFloat16 {
			return false
		}
	}
	return true
}

// onlyMoved reports whether all readers of a value's memory only move elements, or take maxima, into selected
// memory. Rounding commutes with these.
func (n *narrowing) onlyMoved(root *graph.Value) bool {
	moved := false
	for _, v := range n.members[root] {
		for _, reader := range n.readers[v] {
			into := rootOf(reader.Result)
			if into == root {
				continue
			}
			if !n.chosen[into] || reader.Def().Kind != op.Injective && !reader.Def().Selects {
				return false
			}
			moved = true
		}
	}
	return moved
}

// narrowFactors returns the factors of a node that are worth rounding.
func narrowFactors(n *graph.Node) []*graph.Value {
	if n.Is(op.FusedAttention) {
		if shape := n.Operands[0].Shape.Max(); shape[len(shape)-1] >= minTerms {
			return n.Operands[:3]
		}
		return nil
	}
	if _, ok := n.Product(); !ok || array.Elements(n.Out.Shape.Max()) == 0 {
		return nil
	}
	if terms := op.Work(n.Node) / 2 / float64(array.Elements(n.Out.Shape.Max())); terms >= minTerms {
		return n.Operands[:2]
	}
	if n.Def().Spatial {
		return n.Operands[:1]
	}
	return nil
}
