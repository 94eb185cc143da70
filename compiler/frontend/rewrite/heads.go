package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// sharedHeads fuses attention whose keys and values, (batch, heads, positions, size), are repeated for the queries
// of several heads, as exporters write grouped-query attention. The result reads each head in place for the queries
// of its group. fuse applies the operator to operands. It returns nil if nothing matches.
func sharedHeads(g *graph.Graph, operands []*graph.Value, fuse func(...*graph.Value) (*graph.Node, error)) []*graph.Node {
	turned := producer(operands[1])
	if !turned.Is(op.Transpose) || !slices.Equal(op.Perm(turned.Node), []int{0, 1, 3, 2}) {
		return nil
	}
	q, repeated := operands[0], turned.Operands[0]
	if len(q.Shape) != 4 || len(repeated.Shape) != 4 || q.Shape[1] != repeated.Shape[1] {
		return nil // broadcast queries
	}
	keys, values := repeatedHeads(repeated), repeatedHeads(operands[2])
	if keys == nil || values == nil || keys.Shape[1] != values.Shape[1] || len(operands) > 3 && !isSameForHeads(operands[3]) {
		return nil
	}
	b := &heads{Graph: g, name: q.Name, opset: turned.Opset}
	groups := keys.Shape[1]
	list := []*graph.Value{
		b.reshape(q, q.Shape[0], groups, q.Shape[1]/groups, q.Shape[2], q.Shape[3]),
		b.apply(op.Transpose, map[string]*onnx.Attribute{"perm": {Name: "perm", Type: onnx.AttrInts, Ints: []int64{0, 1, 2, 4, 3}}}, keys),
		values,
	}
	if len(operands) > 3 {
		mask := operands[3]
		if s := mask.Shape; len(s) == 4 {
			mask = b.reshape(mask, s[0], 1, 1, s[2], s[3])
		}
		list = append(list, mask)
	}
	if b.err != nil {
		return nil
	}
	fused, err := fuse(list...)
	if err != nil {
		return nil
	}
	b.nodes = append(b.nodes, fused)
	y := b.reshape(fused.Result, q.Shape[0], q.Shape[1], q.Shape[2], fused.Out.Shape[4])
	if b.err != nil {
		return nil
	}
	y.Name, fused.Result.Name = fused.Result.Name, y.Name
	return b.nodes
}

// repeatedHeads returns the heads, (batch, groups, 1, positions, size), that a value repeats consecutively; nil if
// it has another form.
func repeatedHeads(v *graph.Value) *graph.Value {
	joined := producer(v)
	if !joined.Is(op.Reshape) || len(v.Shape) != 4 {
		return nil
	}
	wide := producer(joined.Operands[0])
	if !wide.Is(op.Expand) {
		return nil
	}
	of, s := wide.Operands[0], wide.Out.Shape
	if len(s) != 5 || len(of.Shape) != 5 || of.Const != nil || !slices.Equal(of.Shape, []int64{s[0], s[1], 1, s[3], s[4]}) ||
		!slices.Equal(v.Shape, []int64{s[0], s[1] * s[2], s[3], s[4]}) {
		return nil
	}
	return of
}

// isSameForHeads reports whether a mask has no axis of heads.
func isSameForHeads(mask *graph.Value) bool {
	return len(mask.Shape) <= 2 || len(mask.Shape) == 4 && mask.Shape[1] == 1
}

// heads creates the nodes of attention with shared heads.
type heads struct {
	*graph.Graph
	name  string
	opset int64
	nodes []*graph.Node
	err   error
}

func (b *heads) apply(name string, attrs map[string]*onnx.Attribute, in ...*graph.Value) *graph.Value {
	if b.err != nil {
		return nil
	}
	n, err := b.Apply(op.Node{Name: b.name, Op: name, Opset: b.opset, Attrs: attrs, Outputs: 1}, b.NextName(b.name), in...)
	if err != nil {
		b.err = err
		return nil
	}
	b.nodes = append(b.nodes, n)
	return n.Result
}

func (b *heads) reshape(v *graph.Value, shape ...int64) *graph.Value {
	if v.Const != nil {
		return b.Constant(b.NextName(b.name), &array.Array{DType: v.Const.DType, Shape: shape, Data: v.Const.Data})
	}
	return b.apply(op.Reshape, nil, v, b.Constant(b.NextName(b.name), array.FromInt64(shape, int64(len(shape)))))
}
