package modelzoo

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

const (
	// weightBlock is the number of weights of a column that share a scale.
	weightBlock = 32
	// runtimeDomain contains ONNX Runtime's own operators.
	runtimeDomain = "com.microsoft"
)

// quantiseBlocks rewrites products with known weights like tools for language models: as MatMulNBits, with weights
// of 4 or 8 bits that have one scale per block of a column, without zero points. An embedding table that is also
// used for the scores stays unchanged, since its rows are read.
func quantiseBlocks(m *onnx.Model, bits int64) {
	known, transposed := map[string]*array.Array{}, map[string]*array.Array{}
	for _, t := range m.Graph.Initializers {
		known[t.Name] = t.Value
	}
	for _, n := range m.Graph.Nodes {
		if w := known[n.Inputs[0]]; n.Op == "Transpose" && w != nil && len(w.Shape) == 2 {
			transposed[n.Outputs[0]] = w
		}
		if n.Op != "MatMul" {
			continue
		}
		name, columns := n.Inputs[1], transposed[n.Inputs[1]]
		if w := known[name]; columns == nil && w != nil && w.DType == array.Float32 && len(w.Shape) == 2 {
			columns = byColumn(w)
		}
		if columns == nil {
			continue
		}
		codes, scales := blocksOf(columns, bits)
		n.Op, n.Domain, n.Inputs = "MatMulNBits", runtimeDomain, []string{n.Inputs[0], name + ".codes", name + ".scales"}
		n.Attributes = []*onnx.Attribute{
			integer("K", columns.Shape[1]), integer("N", columns.Shape[0]), integer("bits", bits), integer("block_size", weightBlock),
		}
		m.Graph.Initializers = append(m.Graph.Initializers, &onnx.Tensor{Name: name + ".codes", Value: codes}, &onnx.Tensor{Name: name + ".scales", Value: scales})
	}
	if onnx.OpsetOf(m.Opsets, runtimeDomain) == 0 {
		m.Opsets = append(m.Opsets, onnx.Opset{Domain: runtimeDomain, Version: 1})
	}
	dropUnread(m.Graph)
}

// byColumn returns the columns of weights as rows.
func byColumn(w *array.Array) *array.Array {
	rows, columns := w.Shape[0], w.Shape[1]
	out := array.New(array.Float32, columns, rows)
	for k := range rows {
		for n := range columns {
			copy(out.Data[4*(n*rows+k):4*(n*rows+k)+4], w.Data[4*(k*columns+n):])
		}
	}
	return out
}

// blocksOf returns rows of weights as codes of the given width, the first of a byte lowest, with a scale per block.
// Zero codes fill the last block of a row.
func blocksOf(w *array.Array, bits int64) (codes, scales *array.Array) {
	limit := int64(1)<<(bits-1) - 1
	integers, scales := array.Quantise(w, 1, weightBlock, -limit, limit)
	rows, depth, blocks := w.Shape[0], w.Shape[1], scales.Shape[1]
	codes = array.New(array.Uint8, rows, blocks, weightBlock*bits/8)
	for i := range rows * blocks * weightBlock {
		row, k := i/(blocks*weightBlock), i%(blocks*weightBlock)
		code := byte(1) << (bits - 1)
		if k < depth {
			code += integers.Data[row*depth+k]
		}
		codes.Data[i*bits/8] |= code << (i * bits % 8)
	}
	return codes, scales
}

// dropUnread removes nodes whose results are unused.
func dropUnread(g *onnx.Graph) {
	for range 2 { // a weight of a node that was just removed
		read := map[string]bool{}
		for _, n := range g.Nodes {
			for _, v := range n.Inputs {
				read[v] = true
			}
		}
		for _, v := range g.Outputs {
			read[v.Name] = true
		}
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n *onnx.Node) bool {
			return !slices.ContainsFunc(n.Outputs, func(v string) bool { return read[v] })
		})
		g.Initializers = slices.DeleteFunc(g.Initializers, func(t *onnx.Tensor) bool { return !read[t.Name] })
	}
}
