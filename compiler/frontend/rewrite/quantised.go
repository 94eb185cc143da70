package rewrite

import (
	"maps"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// foldQuantisations merges the arithmetic between an integer sum and its quantisation: the scale joins the
// preceding factors and terms, and bounds, such as those of an activation, join the integer bounds. This leaves
// seven of thirteen operations per result. Results within a rounding error of the midpoint between two integers may
// change to the other.
func foldQuantisations(g *graph.Graph) {
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if !n.Is(op.Quantize) || !isScalar(n.Operands[1]) || n.Operands[1].DType != array.Float32 || n.Operands[1].Const.Float(0) <= 0 {
			continue
		}
		f := &quantisationFold{Graph: g, readers: g.Users(), node: n, factor: 1 / n.Operands[1].Const.Float(0), low: math.Inf(-1), high: math.Inf(1)}
		if made := f.fold(); len(made) > 0 {
			g.Splice(k, made...)
			k += len(made) - 1
		}
	}
}

// quantisationFold is a quantisation under folding.
type quantisationFold struct {
	*graph.Graph
	readers map[*graph.Value][]*graph.Node
	node    *graph.Node
	// factor is the reciprocal of the scale; low and high bound the quantised value.
	factor, low, high float64
	made              []*graph.Node
}

// fold returns the nodes that replace the quantisation, itself last, or nil if nothing can be folded.
func (f *quantisationFold) fold() []*graph.Node {
	x := f.unbounded(f.node.Operands[0])
	scales := f.scales(x, true)
	if !scales && x == f.node.Operands[0] {
		return nil
	}
	attrs := maps.Clone(f.node.Attrs)
	for name, bound := range map[string]float64{"low": f.low, "high": f.high} {
		if !math.IsInf(bound, 0) {
			attrs[name] = &onnx.Attribute{Name: name, Type: onnx.AttrFloat, Float: float32(bound) * float32(f.factor)}
		}
	}
	operands := slices.Clone(f.node.Operands)
	operands[0] = x
	if scales {
		operands[0] = f.scaled(x)
		operands[1] = f.Constant(f.node.Name+".one", array.Scalar(array.Float32, 1))
	}
	f.apply(op.Node{Name: f.node.Name, Op: f.node.Op, Opset: f.node.Opset, Attrs: attrs}, f.node.Result.Name, operands...)
	return f.made
}

// unbounded traces back over activations that only clip a value, and records their bounds.
func (f *quantisationFold) unbounded(v *graph.Value) *graph.Value {
	for f.isOwn(v) {
		low, high, ok := bounds(v.Producer)
		if !ok {
			break
		}
		clamp := func(x float64) float64 { return min(max(x, f.low), f.high) }
		f.low, f.high = clamp(low), clamp(high)
		v = v.Producer.Operands[0]
	}
	return v
}

// bounds returns the range that a node clips a float32 value to, if it does nothing else.
func bounds(n *graph.Node) (low, high float64, ok bool) {
	low, high = math.Inf(-1), math.Inf(1)
	switch {
	case n.Out.DType != array.Float32:
		return low, high, false
	case n.Is("Relu"):
		return 0, high, true
	case !n.Is("Clip") || n.Opset < 11:
		return low, high, false
	}
	for k, bound := range []*float64{&low, &high} {
		if k+1 < len(n.Operands) && n.Operands[k+1] != nil {
			if !isScalar(n.Operands[k+1]) {
				return low, high, false
			}
			*bound = n.Operands[k+1].Const.Float(0)
		}
	}
	return low, high, low <= high
}

// isOwn reports whether a value has a single reader.
func (f *quantisationFold) isOwn(v *graph.Value) bool {
	return v.Producer != nil && len(f.readers[v]) == 1 && !f.IsOutput(v)
}

// scales reports whether a multiple of a value is computed by the same nodes with other constants. With terms, the
// value may be a sum.
func (f *quantisationFold) scales(v *graph.Value, terms bool) bool {
	n := v.Producer
	if n == nil || v.DType != array.Float32 {
		return false
	}
	if n.Is(op.Dequantize) {
		return n.Operands[1].Const != nil && n.Operands[1].DType == array.Float32
	}
	var c *graph.Value
	switch x := constantOperand(n, op.Mul, &c); {
	case !f.isOwn(v):
		return false
	case x != nil:
		return x.Shape.Equal(v.Shape)
	case !terms || !n.Is(op.Add):
		return false
	}
	return !slices.ContainsFunc(n.Operands, func(t *graph.Value) bool { return t.Const == nil && !f.scales(t, false) })
}

// scaled creates the nodes that compute a value times the factor.
func (f *quantisationFold) scaled(v *graph.Value) *graph.Value {
	if v.Const != nil {
		return f.times(v)
	}
	n := v.Producer
	operands := slices.Clone(n.Operands)
	switch {
	case n.Is(op.Dequantize):
		operands[1] = f.times(operands[1])
	case n.Is(op.Mul):
		for k := range operands {
			if operands[k].Const != nil {
				operands[k] = f.times(operands[k])
				break
			}
		}
	default:
		for k := range operands {
			operands[k] = f.scaled(operands[k])
		}
	}
	return f.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, v.Name, operands...)
}

// times returns a constant times the factor.
func (f *quantisationFold) times(v *graph.Value) *graph.Value {
	a := array.New(array.Float32, v.Shape.Fixed()...)
	for i := range a.Len() {
		a.SetFloat(i, v.Const.Float(i)*f.factor)
	}
	return f.Constant(v.Name, a)
}

func (f *quantisationFold) apply(n op.Node, name string, operands ...*graph.Value) *graph.Value {
	made := op.Get(f.Apply(n, name, operands...))
	f.made = append(f.made, made)
	return made.Result
}

// quantiseParts quantises the operands of a concatenation instead of its result: data movement then takes bytes,
// and each part is quantised by the kernel that computes it, or requantised from another scale. It leaves parts
// with other float readers, as in dense blocks, which share one buffer.
func quantiseParts(g *graph.Graph) {
	users := g.Users()
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if !n.Is(op.Quantize) || !isScalar(n.Operands[1]) || len(n.Operands) > 2 && n.Operands[2] != nil && !isScalar(n.Operands[2]) {
			continue
		}
		whole := n.Operands[0]
		c := whole.Producer
		if c == nil || c.Def().Concat == nil || len(users[whole]) != 1 || g.IsOutput(whole) {
			continue
		}
		stays := func(v *graph.Value) bool {
			return v.Const != nil || v.Producer != nil && !v.Producer.Is(op.Dequantize) && (len(users[v]) > 1 || g.IsOutput(v))
		}
		if slices.ContainsFunc(c.Operands, stays) {
			continue
		}
		var made []*graph.Node
		parts := make([]*graph.Value, len(c.Operands))
		for i, v := range c.Operands {
			part := op.Get(g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, v.Name+".quantised", append([]*graph.Value{v}, n.Operands[1:]...)...))
			made, parts[i] = append(made, part), part.Result
		}
		made = append(made, op.Get(g.Apply(op.Node{Name: c.Name, Op: c.Op, Opset: c.Opset, Attrs: c.Attrs}, n.Result.Name, parts...)))
		g.Splice(k, made...)
		k += len(made) - 1
	}
}

// splitDequantised gives each reader of a dequantised value its own dequantisation. The integers are stored then,
// in a quarter of the memory, and each reader's kernel converts them while it reads.
func splitDequantised(g *graph.Graph) {
	users := g.Users()
	for _, n := range slices.Clone(g.Nodes) {
		if !n.Is(op.Dequantize) || g.IsOutput(n.Result) || len(users[n.Result]) < 2 {
			continue
		}
		for _, reader := range users[n.Result][1:] {
			own := op.Get(g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name, n.Operands...))
			g.Insert(slices.Index(g.Nodes, n)+1, own)
			for k, v := range reader.Operands {
				if v == n.Result {
					reader.Operands[k] = own.Result
				}
			}
		}
	}
}
