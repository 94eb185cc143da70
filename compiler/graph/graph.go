package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/op/table"
)

// value is an edge of the graph.
type value struct {
	// id is the position of its creation, the same in every run.
	id   int
	name string
	// Const is set for constants.
	op.Value
	// producer is nil for inputs and constants.
	producer *node
	// layout is the order of the axes in memory, once layouts are assigned.
	layout []int
	// within is set when the value's elements lie in another one's memory.
	within *within
}

// isEmpty reports whether a value has no elements; such values are known without being computed.
func isEmpty(shape []int64) bool { return array.Elements(shape) == 0 }

// node is an operator applied to values; an operand that was left out is nil.
type node struct {
	*op.Node
	in  []*value
	out *value
	// order is the position in the graph's nodes; users of a value come after its producer.
	order int
	// free is set when the result needs no kernel: its elements are where they should be.
	free bool
	// group is the kernel that computes the node, once the graph is partitioned.
	group *group
}

// is reports whether there is a node and it applies the operator of the given name.
func (n *node) is(name string) bool { return n != nil && n.Node.Is(name) }

// isView reports whether the node needs no kernel because its result and its operands share their memory.
func (n *node) isView() bool {
	return n.free || n.Def().Kind == op.Reshaping || n.Def().Kind == op.Permute
}

// graph has its nodes in topological order.
type graph struct {
	name            string
	nodes           []*node
	inputs, outputs []*value
	nextID          int
	// budget pays for what is made; Import catches it when it is spent.
	budget *op.Budget
}

// Bytes that a value and a node take, and those of each operand and axis, as the budget counts them.
const valueBytes, nodeBytes, entryBytes = 128, 256, 64

func (g *graph) newValue(name string, t op.Type) *value {
	g.budget.Bytes(valueBytes + int64(len(name)) + 8*int64(len(t.Shape)))
	g.nextID++
	return &value{id: g.nextID, name: name, Value: op.Value{Type: t}}
}

// nextName is a name for the next value, which is made for a node.
func (g *graph) nextName(node string) string { return fmt.Sprintf("%s.%d", node, g.nextID) }

func (g *graph) constant(name string, a *array.Array) *value {
	v := g.newValue(name, op.Type{DType: a.DType, Shape: a.Shape})
	v.Const = a
	return v
}

// apply makes a node without adding it to the graph. n needs only Name, Op, Opset and Attrs (and Output, Outputs).
func (g *graph) apply(n op.Node, outName string, in ...*value) (*node, error) {
	g.budget.For(n.Name, n.Op)
	g.budget.Bytes(nodeBytes + entryBytes*int64(len(in)))
	n.Budget = g.budget
	for _, v := range in {
		var o op.Value
		if v != nil {
			o = v.Value
		}
		n.In = append(n.In, o)
	}
	if err := table.Infer(&n); err != nil {
		return nil, fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
	}
	made := &node{Node: &n, in: in}
	made.out = g.newValue(outName, n.Out)
	made.out.producer = made
	return made, nil
}

// allKnown reports whether all values that were given are constants.
func allKnown(in []*value) bool {
	for _, v := range in {
		if v != nil && v.Const == nil {
			return false
		}
	}
	return true
}

// insert puts nodes before position at.
func (g *graph) insert(at int, nodes ...*node) {
	g.nodes = slices.Insert(g.nodes, at, nodes...)
}

// number gives every node its order.
func (g *graph) number() {
	for k, n := range g.nodes {
		n.order = k
	}
}

// replace makes every reader of a value read another one of the same type.
func (g *graph) replace(old, with *value) { g.replaceAll(map[*value]*value{old: with}) }

// replaceAll makes every reader of a value in the map read the one that stands there, which has the same type.
func (g *graph) replaceAll(with map[*value]*value) {
	for _, n := range g.nodes {
		for k, v := range n.in {
			if w := with[v]; w != nil {
				n.in[k] = w
				n.In[k] = w.Value
			}
		}
	}
	for k, v := range g.outputs {
		if w := with[v]; w != nil {
			g.outputs[k] = w
		}
	}
}

// users lists the readers of every value, in order and each once.
func (g *graph) users() map[*value][]*node {
	users := map[*value][]*node{}
	for _, n := range g.nodes {
		for _, v := range n.in {
			if of := users[v]; v != nil && (len(of) == 0 || of[len(of)-1] != n) {
				users[v] = append(of, n)
			}
		}
	}
	return users
}

func (g *graph) isOutput(v *value) bool { return slices.Contains(g.outputs, v) }

// removeDead drops nodes whose results nobody reads.
func (g *graph) removeDead() {
	live := map[*value]bool{}
	for _, v := range g.outputs {
		live[v] = true
	}
	var kept []*node
	for k := len(g.nodes) - 1; k >= 0; k-- {
		n := g.nodes[k]
		if !live[n.out] {
			continue
		}
		kept = append(kept, n)
		for _, v := range n.in {
			live[v] = true
		}
	}
	slices.Reverse(kept)
	g.nodes = kept
	g.number()
}
