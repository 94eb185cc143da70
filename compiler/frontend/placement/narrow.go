package placement

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Narrow is the pass that has factors of products in float32 stored in a type of 16 bits: half the bytes, and
// instructions for matrices multiply them as they are. Operators still compute in float32, so that sums, softmax and
// normalisation lose nothing: what is rounded is what lies in memory, once, by whoever stores it. These are stored so:
//
//   - weights and operands of products whose sums have leastTerms terms or more, attention's among them, and what
//     other convolutions slide over, which is read many times;
//   - what is only moved, or of which maxima are taken, before it becomes such an operand.
//
// Constants with elements beyond the type's range stay as they are. All readers of a value read the rounded one.
// Inputs and outputs of the model stay as they are, and so does all that no product reads, and what is no constant
// where only these are stored so.
func Narrow(as array.Storage) graph.Pass {
	return graph.Pass{Name: "store-as-" + as.Type.String(), Run: func(g *graph.Graph) error {
		narrowing := &narrowing{Graph: g, to: as.Type, constants: as.Constants, readers: g.Users(), members: map[*graph.Value][]*graph.Value{}, chosen: map[*graph.Value]bool{}}
		narrowing.run()
		return nil
	}}
}

// leastTerms is how long the sums are for which factors are worth rounding: instructions for matrices take so many
// terms of 16 bits. Shorter ones, such as those that give each position its frequencies, may need all bits.
const leastTerms = 16

// narrowing chooses memory by its root, the value that all values in it lie in.
type narrowing struct {
	*graph.Graph
	to array.DType
	// constants is set where nothing else is stored so.
	constants bool
	readers   map[*graph.Value][]*graph.Node
	members   map[*graph.Value][]*graph.Value
	chosen    map[*graph.Value]bool
	// order is that in which they were chosen: nothing depends on the order of a map.
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

// rootOf is the value in whose memory another one lies.
func rootOf(v *graph.Value) *graph.Value {
	for v.Within != nil {
		v = v.Within.Of
	}
	return v
}

// choose takes the memory of a value, unless it is the model's own or of another type. A constant of one element is no
// memory.
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

// mostFloat16 is the largest finite value of float16.
const mostFloat16 = 65504

// fits reports whether a type has the range of all elements of a constant.
func fits(c *array.Array, to array.DType) bool {
	for k := int64(0); to == array.Float16 && k < c.Len(); k++ {
		if math.Abs(c.Float(k)) > mostFloat16 {
			return false
		}
	}
	return true
}

// onlyMoved reports whether what reads a value's memory moves elements, or takes maxima, into memory that is chosen:
// they are rounded there at the latest, to the same.
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

// narrowFactors are the factors of a node that are worth rounding.
func narrowFactors(n *graph.Node) []*graph.Value {
	if n.Is(op.FusedAttention) {
		if shape := n.Operands[0].Shape; shape[len(shape)-1] >= leastTerms {
			return n.Operands[:3]
		}
		return nil
	}
	if _, ok := n.Product(); !ok || array.Elements(n.Out.Shape) == 0 {
		return nil
	}
	if terms := op.Work(n.Node) / 2 / float64(array.Elements(n.Out.Shape)); terms >= leastTerms {
		return n.Operands[:2]
	}
	if n.Def().Spatial {
		return n.Operands[:1]
	}
	return nil
}
