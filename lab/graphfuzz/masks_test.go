package graphfuzz

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// attentionOpset is the operator set of models with the operator Attention.
const attentionOpset = 23

// maskedCase draws one or two layers of masked attention. Some queries may see no key.
func (g *generator) maskedCase(seed uint64) *Case {
	m := &masked{generator: g, batch: g.rows(2), keys: g.rows(12), head: extent.Of(pick(g, []int64{2, 4, 5, 8, 16}))}
	groups, shared := 1+int64(g.rng.IntN(3)), 1+int64(g.rng.IntN(2))
	m.groups, m.heads, m.queries = extent.Of(groups), extent.Of(groups*shared), m.keys
	if g.rng.IntN(3) == 0 {
		m.queries = g.rows(12)
	}
	form := pick(g, []func(q, k, v tensor) tensor{m.operator, m.operator, m.explicit})
	q, k, v := m.add(array.Float32, m.batch, m.heads, m.queries, m.head), m.add(array.Float32, m.batch, m.groups, m.keys, m.head), m.add(array.Float32, m.batch, m.groups, m.keys, m.head)
	y := form(q, k, v)
	if m.groups == m.heads && m.keys == m.queries && g.rng.IntN(2) == 0 { // what a masked row does to a later layer
		y = m.nodeOf("Add", y.dtype, y.dims, []string{q.name, y.name})
		y = form(y, y, y)
	}
	m.graph.Outputs = append(m.graph.Outputs, info(y))
	g.cover()
	return &Case{Seed: seed, Inputs: g.inputs, Symbols: g.symbols.Symbols(), Model: &onnx.Model{
		IRVersion: 10, ProducerName: "graphfuzz", Opsets: []onnx.Opset{{Version: attentionOpset}}, Graph: g.graph,
	}}
}

// masked generates attention of (batch, heads, queries, head) over (batch, groups, keys, head).
type masked struct {
	*generator
	batch, heads, groups, queries, keys, head extent.Extent
}

// mask adds a mask that broadcasts to (batch, heads, queries, keys), of bools or of numbers to add. Those are 0 and
// off.
func (m *masked) mask(d array.DType, off float64) tensor {
	one := extent.Of(1)
	shape := pick(m.generator, [][]extent.Extent{{m.queries, m.keys}, {one, one, m.queries, m.keys}, {m.batch, one, m.queries, m.keys}, {m.batch, m.heads, m.queries, m.keys}})
	t := m.add(d, shape...)
	keys := m.keys.Max()
	a := m.inputs[t.name]
	for i := range a.Len() {
		visible := m.rng.IntN(3) > 0
		switch {
		case d == array.Bool:
			a.SetInt(i, 0)
			if visible {
				a.SetInt(i, 1)
			}
		case !visible:
			a.SetFloat(i, off)
		}
	}
	for row := range a.Len() / keys {
		if m.rng.IntN(4) > 0 {
			continue
		}
		for i := row * keys; i < (row+1)*keys; i++ {
			if d == array.Bool {
				a.SetInt(i, 0)
			} else {
				a.SetFloat(i, off)
			}
		}
	}
	return t
}

// operator adds the operator Attention.
func (m *masked) operator(q, k, v tensor) tensor {
	in, attributes := []string{q.name, k.name, v.name}, []*onnx.Attribute{integer("is_causal", int64(m.rng.IntN(2)))}
	if m.rng.IntN(4) > 0 {
		in = append(in, m.mask(pick(m.generator, []array.DType{array.Bool, array.Float32}), pick(m.generator, []float64{math.Inf(-1), -1e4})).name)
	}
	if m.rng.IntN(4) == 0 {
		attributes = append(attributes, &onnx.Attribute{Name: "softcap", Type: onnx.AttrFloat, Float: 2})
	}
	return m.nodeOf("Attention", q.dtype, q.dims, in, attributes...)
}

// explicit adds attention as a product, a mask, a softmax and another product. A softmax over a row of minus infinity
// is NaN, which some models replace by 0.
func (m *masked) explicit(q, k, v tensor) tensor {
	scores, all := extent.ShapeOf(m.batch, m.heads, m.queries, m.keys), extent.ShapeOf(m.batch, m.heads, m.keys, m.head)
	widen := func(t tensor) tensor {
		if m.heads == m.groups {
			return t
		}
		narrow := extent.ShapeOf(m.batch, m.groups, extent.Of(1), m.keys, m.head)
		wide := narrow.With(2, m.heads.Over(m.groups))
		t = m.nodeOf("Unsqueeze", t.dtype, narrow, []string{t.name, m.ints(2)})
		shape, _ := m.targetOf(wide)
		t = m.nodeOf("Expand", t.dtype, wide, []string{t.name, shape})
		t, _ = m.reshaped(t, all)
		return t
	}
	k, v = widen(k), widen(v)
	turned := m.nodeOf("Transpose", k.dtype, all.Permuted([]int{0, 1, 3, 2}), single(k), ints("perm", 0, 1, 3, 2))
	s := m.nodeOf("MatMul", q.dtype, scores, []string{q.name, turned.name})
	s = m.nodeOf("Mul", s.dtype, scores, []string{s.name, m.scalar(0.25)})
	off := pick(m.generator, []float64{math.Inf(-1), math.Inf(-1), -1e4, -math.MaxFloat32})
	if m.rng.IntN(2) == 0 {
		s = m.nodeOf("Add", s.dtype, scores, []string{s.name, m.mask(array.Float32, off).name})
	} else {
		s = m.nodeOf("Where", s.dtype, scores, []string{m.mask(array.Bool, off).name, s.name, m.scalar(off)})
	}
	p := m.nodeOf("Softmax", s.dtype, scores, single(s), integer("axis", -1))
	if m.rng.IntN(2) == 0 {
		nan := m.nodeOf("IsNaN", array.Bool, scores, single(p))
		p = m.nodeOf("Where", p.dtype, scores, []string{nan.name, m.scalar(0), p.name})
	}
	return m.nodeOf("MatMul", p.dtype, q.dims, []string{p.name, v.name})
}
