package expr

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

type (
	intFn   func(f *frame) int64
	floatFn func(f *frame) float64
)

// compiler turns the expressions of one stage into closures over a frame.
type compiler struct {
	slots  map[*Var]int
	values map[*Tensor]*array.Array
}

// float compiles an expression of floating-point type.
func (c *compiler) float(e Expr) floatFn {
	switch n := e.(type) {
	case *Float:
		v := rounding(n.Type)(n.Value)
		return func(*frame) float64 { return v }
	case *Load:
		return c.loadFloat(n)
	case *Binary:
		return binaryFloat(n.Op, n.DType(), c.float(n.A), c.float(n.B))
	case *Unary:
		return unaryFloat(n.Op, n.DType(), c.float(n.A))
	case *Select:
		cond, a, b := c.int(n.Cond), c.float(n.A), c.float(n.B)
		return func(f *frame) float64 {
			if cond(f) != 0 {
				return a(f)
			}
			return b(f)
		}
	case *Cast:
		return c.castFloat(n)
	}
	return func(f *frame) float64 {
		f.fail(fmt.Errorf("%T of type %v cannot be evaluated", e, e.DType()))
		return 0
	}
}

func (c *compiler) castFloat(n *Cast) floatFn {
	round := rounding(n.Type)
	if n.A.DType().IsFloat() {
		a := c.float(n.A)
		return func(f *frame) float64 { return round(a(f)) }
	}
	a := c.int(n.A)
	if n.A.DType() == array.Uint64 {
		return func(f *frame) float64 { return round(float64(uint64(a(f)))) }
	}
	return func(f *frame) float64 { return round(float64(a(f))) }
}

// int compiles an expression of integer or boolean type.
func (c *compiler) int(e Expr) intFn {
	switch n := e.(type) {
	case *Int:
		v := n.Value
		return func(*frame) int64 { return v }
	case *Var:
		slot := c.slots[n]
		return func(f *frame) int64 { return f.vars[slot] }
	case *Load:
		data, offset := c.values[n.Tensor], c.offset(n)
		return func(f *frame) int64 {
			if i := offset(f); i >= 0 {
				return data.Int(i)
			}
			return 0
		}
	case *Binary:
		return c.binaryInt(n)
	case *Unary:
		return c.unaryInt(n)
	case *Select:
		cond, a, b := c.int(n.Cond), c.int(n.A), c.int(n.B)
		return func(f *frame) int64 {
			if cond(f) != 0 {
				return a(f)
			}
			return b(f)
		}
	case *Cast:
		return c.castInt(n)
	}
	return func(f *frame) int64 {
		f.fail(fmt.Errorf("%T of type %v cannot be evaluated", e, e.DType()))
		return 0
	}
}

func (c *compiler) castInt(n *Cast) intFn {
	if n.A.DType().IsFloat() {
		a := c.float(n.A)
		if n.Type == array.Bool {
			return func(f *frame) int64 { return truth(a(f) != 0) }
		}
		wrap := wrapping(n.Type)
		return func(f *frame) int64 { return wrap(truncate(n.Type, a(f))) }
	}
	a, wrap := c.int(n.A), wrapping(n.Type)
	return func(f *frame) int64 { return wrap(a(f)) }
}

// truncate rounds toward zero to an integer that then wraps to type d. Values beyond 32 bits (64 for the types that
// need more) first become the nearest such integer, and NaN zero: the behaviour of processors, made uniform.
func truncate(d array.DType, v float64) int64 {
	limit, hi, lo := float64(1<<31), int64(math.MaxInt32), int64(math.MinInt32)
	if d == array.Int64 || d == array.Uint32 || d == array.Uint64 {
		limit, hi, lo = 1<<63, math.MaxInt64, math.MinInt64
	}
	switch {
	case v != v:
		return 0
	case d == array.Uint64 && v >= 1<<63:
		if v >= 1<<64 {
			return -1
		}
		return int64(uint64(v))
	case v >= limit:
		return hi
	case v < -limit:
		return lo
	}
	return int64(v)
}

func (c *compiler) loadFloat(n *Load) floatFn {
	a, offset := c.values[n.Tensor], c.offset(n)
	if a.DType == array.Float32 {
		data := a.Data
		return func(f *frame) float64 {
			if i := offset(f); i >= 0 {
				return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
			}
			return 0
		}
	}
	return func(f *frame) float64 {
		if i := offset(f); i >= 0 {
			return a.Float(i)
		}
		return 0
	}
}

// offset compiles the position of a load; it is negative, and the frame failed, if an index is out of bounds.
func (c *compiler) offset(n *Load) intFn {
	if at, ok := c.affine(n); ok {
		return at.offsetFn()
	}
	shape := n.Tensor.Shape
	index := make([]intFn, len(shape))
	for k, e := range n.Index {
		index[k] = c.int(e)
	}
	return func(f *frame) int64 {
		var off int64
		for k, at := range index {
			i := at(f)
			if i < 0 || i >= shape[k] {
				f.fail(fmt.Errorf("index %d of dimension %d is outside %s%v", i, k, n.Tensor.Name, shape))
				return -1
			}
			off = off*shape[k] + i
		}
		return off
	}
}

// term is one variable of an affine offset.
type term struct {
	slot   int
	stride int64
}

// affineLoad is a load whose position is affine in the variables and always in bounds.
type affineLoad struct {
	at    Linear
	terms []term
}

func (c *compiler) affine(n *Load) (load affineLoad, ok bool) {
	stride := int64(1)
	for k := len(n.Index) - 1; k >= 0; k-- {
		index := Linearize(n.Index[k])
		lo, hi, ok := index.Bounds()
		if !ok || lo < 0 || hi >= n.Tensor.Shape[k] {
			return affineLoad{}, false
		}
		load.at = load.at.Plus(index, stride)
		stride *= n.Tensor.Shape[k]
	}
	for _, t := range load.at.Terms {
		v, ok := t.Atom.(*Var)
		if !ok {
			return affineLoad{}, false
		}
		if v.Extent > 1 {
			load.terms = append(load.terms, term{c.slots[v], t.Coef})
		}
	}
	return load, true
}

func (a affineLoad) offsetFn() intFn {
	base, t := a.at.Const, a.terms
	switch len(t) {
	case 0:
		return func(*frame) int64 { return base }
	case 1:
		return func(f *frame) int64 { return base + f.vars[t[0].slot]*t[0].stride }
	case 2:
		return func(f *frame) int64 { return base + f.vars[t[0].slot]*t[0].stride + f.vars[t[1].slot]*t[1].stride }
	}
	return func(f *frame) int64 {
		off := base
		for k := range t {
			off += f.vars[t[k].slot] * t[k].stride
		}
		return off
	}
}

// stream is an affine float32 load as seen from its innermost loop.
type stream struct {
	data   []float32
	stride int64
	offset intFn
}

// stream prepares a load for a loop over the variable inner; false if it is not an affine load of float32.
func (c *compiler) stream(e Expr, inner *Var) (stream, bool) {
	n, ok := e.(*Load)
	if !ok || n.Tensor.DType != array.Float32 {
		return stream{}, false
	}
	load, ok := c.affine(n)
	if !ok {
		return stream{}, false
	}
	stride, _ := load.at.Coef(inner)
	return stream{data: c.values[n.Tensor].Float32s(), stride: stride, offset: load.offsetFn()}, true
}
