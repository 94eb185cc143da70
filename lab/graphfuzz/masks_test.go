package graphfuzz

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// attentionOpset is the operator set of models with the operator Attention.
const attentionOpset = 23

// generateMasked draws one or two layers of masked attention. Some queries may see no key.
func generateMasked(seed uint64) *Case {
	g := &generator{
		rng: rand.New(rand.NewPCG(seed, 7)), graph: &onnx.Graph{Name: fmt.Sprintf("masked%d", seed)}, inputs: map[string]*array.Array{},
	}
	m := &masked{generator: g, batch: 1 + int64(g.rng.IntN(2)), keys: 1 + int64(g.rng.IntN(12)), head: pick(g, []int64{2, 4, 5, 8, 16})}
	m.groups, m.heads, m.queries = 1+int64(g.rng.IntN(3)), 1+int64(g.rng.IntN(2)), m.keys
	m.heads *= m.groups
	if g.rng.IntN(3) == 0 {
		m.queries = 1 + int64(g.rng.IntN(12))
	}
	form := pick(g, []func(q, k, v tensor) tensor{m.operator, m.operator, m.explicit})
	q, k, v := m.fed(array.Float32, m.batch, m.heads, m.queries, m.head), m.fed(array.Float32, m.batch, m.groups, m.keys, m.head), m.fed(array.Float32, m.batch, m.groups, m.keys, m.head)
	y := form(q, k, v)
	if m.groups == m.heads && m.keys == m.queries && g.rng.IntN(2) == 0 { // what a masked row does to a later layer
		y = m.node("Add", y.dtype, y.shape, []string{q.name, y.name})
		y = form(y, y, y)
	}
	m.graph.Outputs = append(m.graph.Outputs, info(y))
	return &Case{Seed: seed, Inputs: g.inputs, Model: &onnx.Model{
		IRVersion: 10, ProducerName: "graphfuzz", Opsets: []onnx.Opset{{Version: attentionOpset}}, Graph: g.graph,
	}}
}

// masked generates attention of (batch, heads, queries, head) over (batch, groups, keys, head).
type masked struct {
	*generator
	batch, heads, groups, queries, keys, head int64
}

// mask adds a mask that broadcasts to (batch, heads, queries, keys), of bools or of numbers to add. Those are 0 and
// off.
func (m *masked) mask(d array.DType, off float64) tensor {
	shape := pick(m.generator, [][]int64{{m.queries, m.keys}, {1, 1, m.queries, m.keys}, {m.batch, 1, m.queries, m.keys}, {m.batch, m.heads, m.queries, m.keys}})
	t := m.fed(d, shape...)
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
	for row := range a.Len() / m.keys {
		if m.rng.IntN(4) > 0 {
			continue
		}
		for i := row * m.keys; i < (row+1)*m.keys; i++ {
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
	return m.node("Attention", q.dtype, q.shape, in, attributes...)
}

// explicit adds attention as a product, a mask, a softmax and another product. A softmax over a row of minus infinity
// is NaN, which some models replace by 0.
func (m *masked) explicit(q, k, v tensor) tensor {
	scores, all := []int64{m.batch, m.heads, m.queries, m.keys}, []int64{m.batch, m.heads, m.keys, m.head}
	widen := func(t tensor) tensor {
		if m.heads == m.groups {
			return t
		}
		shared := m.heads / m.groups
		t = m.node("Unsqueeze", t.dtype, []int64{m.batch, m.groups, 1, m.keys, m.head}, []string{t.name, m.ints(2)})
		wide := []int64{m.batch, m.groups, shared, m.keys, m.head}
		t = m.node("Expand", t.dtype, wide, []string{t.name, m.ints(wide...)})
		return m.node("Reshape", t.dtype, all, []string{t.name, m.ints(all...)})
	}
	k, v = widen(k), widen(v)
	turned := m.node("Transpose", k.dtype, []int64{m.batch, m.heads, m.head, m.keys}, single(k), ints("perm", 0, 1, 3, 2))
	s := m.node("MatMul", q.dtype, scores, []string{q.name, turned.name})
	number := func(v float64) string {
		a := array.New(array.Float32)
		a.SetFloat(0, v)
		return m.constant(a)
	}
	s = m.node("Mul", s.dtype, scores, []string{s.name, number(0.25)})
	off := pick(m.generator, []float64{math.Inf(-1), math.Inf(-1), -1e4, -math.MaxFloat32})
	if m.rng.IntN(2) == 0 {
		s = m.node("Add", s.dtype, scores, []string{s.name, m.mask(array.Float32, off).name})
	} else {
		s = m.node("Where", s.dtype, scores, []string{m.mask(array.Bool, off).name, s.name, number(off)})
	}
	p := m.node("Softmax", s.dtype, scores, single(s), integer("axis", -1))
	if m.rng.IntN(2) == 0 {
		nan := m.node("IsNaN", array.Bool, scores, single(p))
		p = m.node("Where", p.dtype, scores, []string{nan.name, number(0), p.name})
	}
	return m.node("MatMul", p.dtype, q.shape, []string{p.name, v.name})
}
