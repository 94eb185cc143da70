package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Graph is a model as operators, its nodes in topological order.
type Graph struct {
	Name            string
	Nodes           []*Node
	Inputs, Outputs []*Value
	// Own is the number of Outputs that are outputs of the model. After them come counts of open extents, and bools
	// that must be true in an execution.
	Own int
	// Open lists outputs with extents that executions count.
	Open []OpenOutput
	// Required has a message for each of the bools, which are the last of Outputs.
	Required []string
	// Extents holds the symbols of open extents, which each execution chooses.
	Extents *extent.Set
	// Checks lists the inputs that index axes.
	Checks []IndexCheck
	// Loops lists the loops, outer ones before those inside.
	Loops  []*Loop
	nextID int
	// Budget is charged for new values, and panics when exhausted; see op.Budget.
	Budget *op.Budget
}

// OpenOutput gives the extent of an output's axis as another output, a scalar of type i64.
type OpenOutput struct{ Output, Axis, Count int }

// IndexCheck requires that elements of an input index an axis of Extent elements, counted from its end if negative.
// The elements are a strided view of the input's memory, from element First on: along each axis, Counts elements that
// are Strides apart, the outermost first.
type IndexCheck struct {
	Input   *Value
	First   extent.Extent
	Counts  []extent.Extent
	Strides []int64
	Extent  extent.Extent
}

// EntryBytes is the budget's charge for an operand, a name or an attribute.
const EntryBytes = 64

const valueBytes, nodeBytes = 128, 256

// NewValue returns a value without a producer.
func (g *Graph) NewValue(name string, t op.Type) *Value {
	g.Budget.Bytes(valueBytes + int64(len(name)) + 8*int64(t.Shape.Rank()))
	g.nextID++
	return &Value{ID: g.nextID, Name: name, Value: op.Value{Type: t}}
}

// NextName returns a name for a node's next value.
func (g *Graph) NextName(node string) string { return fmt.Sprintf("%s.%d", node, g.nextID) }

// Constant returns a value of known elements.
func (g *Graph) Constant(name string, a *array.Array) *Value {
	v := g.NewValue(name, op.Type{DType: a.DType, Shape: extent.Fixed(a.Shape...)})
	v.Const = a
	return v
}

// Apply returns a node without adding it to the graph. n needs only Name, Op, Opset and Attrs (and Output, Outputs).
func (g *Graph) Apply(n op.Node, outName string, in ...*Value) (*Node, error) {
	g.Budget.For(n.Name, n.Op)
	g.Budget.Bytes(nodeBytes + EntryBytes*int64(len(in)))
	n.Budget = g.Budget
	for _, v := range in {
		var o op.Value
		if v != nil {
			o = v.Value
		}
		n.In = append(n.In, o)
	}
	if err := op.InferNode(&n); err != nil {
		return nil, fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
	}
	made := &Node{Node: &n, Operands: in}
	made.Result = g.NewValue(outName, n.Out)
	made.Result.Producer = made
	return made, nil
}

// Insert inserts nodes before position at.
func (g *Graph) Insert(at int, nodes ...*Node) {
	g.Nodes = slices.Insert(g.Nodes, at, nodes...)
}

// Splice replaces node k by others, of which the last one computes its result.
func (g *Graph) Splice(k int, nodes ...*Node) {
	g.Replace(g.Nodes[k].Result, nodes[len(nodes)-1].Result)
	g.Nodes = slices.Replace(g.Nodes, k, k+1, nodes...)
}

// Number sets the order of every node.
func (g *Graph) Number() {
	for k, n := range g.Nodes {
		n.Order = k
	}
}

// Replace makes every reader of a value read another one of the same type.
func (g *Graph) Replace(old, with *Value) { g.ReplaceAll(map[*Value]*Value{old: with}) }

// ReplaceAll makes every reader of a value in the map read its replacement, which has the same type.
func (g *Graph) ReplaceAll(with map[*Value]*Value) {
	for _, n := range g.Nodes {
		for k, v := range n.Operands {
			if w := with[v]; w != nil {
				n.Operands[k] = w
				n.In[k] = w.Value
			}
		}
	}
	for k, v := range g.Outputs {
		if w := with[v]; w != nil {
			g.Outputs[k] = w
		}
	}
	for _, s := range g.Extents.Symbols() {
		if v, counted := s.Source.(*Value); counted && with[v] != nil {
			s.Source = with[v]
		}
	}
}

// Counts returns the values that hold extents of needed nodes, except the numbers of iterations.
func (g *Graph) Counts() (counts []*Value) {
	needed := map[*Value]bool{}
	for _, v := range g.Outputs {
		needed[v] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if !needed[n.Result] {
			continue
		}
		for _, v := range n.Operands {
			needed[v] = true
		}
		for _, v := range n.Counts() {
			if needed[v] = true; !slices.Contains(counts, v) && v.CounterOf == nil {
				counts = append(counts, v)
			}
		}
	}
	return counts
}

// Users lists the readers of every value, in order and each once.
func (g *Graph) Users() map[*Value][]*Node {
	users := map[*Value][]*Node{}
	for _, n := range g.Nodes {
		for _, v := range n.Operands {
			if of := users[v]; v != nil && (len(of) == 0 || of[len(of)-1] != n) {
				users[v] = append(of, n)
			}
		}
	}
	return users
}

// IsOutput reports whether the model has the value as an output, or a loop carries it: it then has memory of its own.
func (g *Graph) IsOutput(v *Value) bool { return g.IsOutputBeside(nil, v) }

// IsOutputBeside is IsOutput but for what a loop carries.
func (g *Graph) IsOutputBeside(loop *Loop, v *Value) bool {
	return slices.Contains(g.Outputs, v) || slices.ContainsFunc(g.Loops, func(l *Loop) bool { return l != loop && l.carries(v) })
}

// RemoveDead removes nodes whose results are unused.
func (g *Graph) RemoveDead() {
	live := map[*Value]bool{}
	for _, v := range g.Outputs {
		live[v] = true
	}
	var kept []*Node
	for k := len(g.Nodes) - 1; k >= 0; k-- {
		n := g.Nodes[k]
		if !live[n.Result] {
			continue
		}
		kept = append(kept, n)
		for _, v := range n.Operands {
			live[v] = true
		}
		if n.Control != nil {
			for _, v := range n.Control.Loop.States() {
				live[v] = true
			}
		}
	}
	slices.Reverse(kept)
	g.Nodes = kept
	g.Loops = slices.DeleteFunc(g.Loops, func(l *Loop) bool { return g.FirstEnd(l) < 0 })
	g.Number()
}

// Value is an edge of the graph.
type Value struct {
	// ID is its number in order of creation, reproducible between runs.
	ID   int
	Name string
	// Value holds the type, and the elements of constants.
	op.Value
	// Producer is nil for inputs and constants.
	Producer *Node
	// Layout is the memory order of the axes, once layouts are assigned.
	Layout []int
	// Within is set if the value's elements are part of another one's memory.
	Within *Within
	// CounterOf is the loop whose iterations the value numbers; nil for others.
	CounterOf *Loop
	// Stored is the element type in memory, if narrower than the value's type, which operators see.
	Stored array.DType
}

// InMemory returns the type of the value's elements in memory.
func (v *Value) InMemory() array.DType {
	if v.Stored != array.Invalid {
		return v.Stored
	}
	return v.DType
}

// Within locates a value in the memory of another one.
type Within struct {
	Of *Value
	// Begin is the index of the value's first element in Of, by axes in memory order; nil if the two are the same
	// elements in another shape.
	Begin []extent.Extent
}

// AllKnown reports whether all given values are constants of fixed shape.
func AllKnown(values []*Value) bool {
	return !slices.ContainsFunc(values, func(v *Value) bool { return v != nil && (v.Const == nil || v.Shape.IsOpen()) })
}

// Node is an operator applied to values; an omitted operand is nil.
type Node struct {
	// Node holds the attributes, and the types of operands and result.
	*op.Node
	Operands []*Value
	Result   *Value
	// Order is the position in the graph's nodes; readers of a value come after its producer.
	Order int
	// Free is set if the result needs no kernel, since its elements are already in place.
	Free bool
	// Control describes a node that begins or ends a loop; nil for others.
	Control *Control
	// Loops lists the loops around the node, outer ones first, once they are grouped.
	Loops []*Loop
	// Kernel is the kernel that computes the node, once the graph is partitioned.
	Kernel *Kernel
}

// Counts returns the values that hold extents that depend on data: those of the node's operands and result, and those
// in known numbers.
func (n *Node) Counts() (counts []*Value) {
	see := func(e extent.Extent) {
		e.Each(func(s *extent.Symbol) {
			if v, counted := s.Source.(*Value); counted && !slices.Contains(counts, v) {
				counts = append(counts, v)
			}
		})
	}
	seeAll := func(s extent.Shape, numbers []op.Number) {
		if s.IsOpen() {
			for _, e := range s.Extents() {
				see(e)
			}
		}
		for _, x := range numbers {
			see(x.Of)
		}
	}
	for _, v := range n.In {
		seeAll(v.Shape, v.Numbers)
	}
	seeAll(n.Out.Shape, n.Numbers)
	if n.Control != nil {
		see(n.Control.At)
	}
	return counts
}

// Is reports whether the node exists and applies the named operator.
func (n *Node) Is(name string) bool { return n != nil && n.Node.Is(name) }

// IsView reports whether the node needs no kernel because its result and its operands share their memory.
func (n *Node) IsView() bool {
	return n.Free || n.Control != nil || n.Def().Kind == op.Reshaping || n.Def().Kind == op.Permute
}

// Kernel holds the nodes that one kernel computes, in topological order.
type Kernel struct {
	// Anchor is the node around which the kernel grew.
	Anchor *Node
	Nodes  []*Node
	// Stored lists the results that others read, in order; the last node's is the last.
	Stored []*Value
	// Prologue lists results that only the anchor reads; schedules choose how much of them to compute at a time.
	Prologue []*Value
}

// Tail returns the last node.
func (k *Kernel) Tail() *Node { return k.Nodes[len(k.Nodes)-1] }

// Begin returns the order of the first node whose result is stored. All inputs of the kernel are computed before
// that node, so that kernels in this order can run one after the other.
func (k *Kernel) Begin() int { return k.Stored[0].Producer.Order }

// Pass transforms a graph into an equivalent one.
type Pass struct {
	// Name identifies the pass in dumps.
	Name string
	Run  func(*Graph) error
}
