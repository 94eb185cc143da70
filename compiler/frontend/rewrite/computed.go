package rewrite

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// mergeComputed merges nodes that compute the same from constants alone. Such nodes exist where a result depends on
// open extents: each layer of a decoder, for example, computes the positions and masks of tokens after the past.
func mergeComputed(g *graph.Graph) {
	first, with := map[string]*graph.Value{}, map[*graph.Value]*graph.Value{}
	computed := map[*graph.Value]bool{}
	for _, n := range g.Nodes {
		isComputed := !n.Weights && !dependsOnIteration(n) && (len(n.Operands) > 0 || n.Numbers != nil)
		for _, v := range n.Operands {
			isComputed = isComputed && (v == nil || v.Const != nil || v.Numbers != nil || computed[v])
		}
		if !isComputed {
			continue
		}
		computed[n.Result] = true
		key, ok := sameComputed(n, with)
		switch {
		case !ok || g.IsOutput(n.Result):
		case first[key] == nil:
			first[key] = n.Result
		default:
			with[n.Result] = first[key]
		}
	}
	g.ReplaceAll(with)
}

// dependsOnIteration reports whether a node is a part of a loop by itself.
func dependsOnIteration(n *graph.Node) bool {
	return n.Control != nil || slices.ContainsFunc(n.Counts(), func(v *graph.Value) bool { return v.CounterOf != nil })
}

// sameComputed returns a key that is equal for nodes that compute the same, after the given substitutions; ok is
// false for a node with attributes without a short text.
func sameComputed(n *graph.Node, with map[*graph.Value]*graph.Value) (key string, ok bool) {
	var b strings.Builder
	fmt.Fprint(&b, n.Op, n.Opset, n.Output, n.Out, n.Numbers)
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		switch a := n.Attrs[name]; a.Type {
		case onnx.AttrInt, onnx.AttrInts, onnx.AttrFloat, onnx.AttrString:
			fmt.Fprintf(&b, " %s=%d %v %v %q", name, a.Int, a.Ints, a.Float, a.String)
		default:
			return "", false
		}
	}
	for _, v := range n.Operands {
		if w := with[v]; w != nil {
			v = w
		}
		switch {
		case v == nil:
			fmt.Fprint(&b, " -")
		case v.Numbers != nil:
			fmt.Fprint(&b, " ", v.Type, v.Numbers)
		case v.Const == nil:
			fmt.Fprint(&b, " ", v.ID)
		default:
			fmt.Fprintf(&b, " %v %x", v.Type, sha256.Sum256(v.Const.Data))
		}
	}
	return b.String(), true
}
