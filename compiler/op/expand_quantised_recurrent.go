package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// quantisedWeights are 8-bit weights of a recurrent layer, prepared for the products of all steps.
type quantisedWeights struct {
	// codes [depth, gates*hidden] have their zero points subtracted; sums [1, gates*hidden] are their column sums.
	codes, sums *Value
	// scale is a single number, or one per column.
	scale *Value
}

// wantQuantised fails unless input k has bytes of the given depth for each direction, and inputs first and first+1
// their scales and zero points.
func (r *recurrentLayer) wantQuantised(k int, depth int64, first int) {
	w, columns := r.tensor(k), r.gates*r.size
	if r.failed() {
		return
	}
	bytes := w.DType == array.Int8 || w.DType == array.Uint8
	if want := extent.Fixed(r.directions, depth, columns); !bytes || !w.Shape.Equal(want) {
		r.fail("input %d is %v, want bytes of shape %v", k, w.Type, want)
	}
	for j, d := range []array.DType{array.Float32, w.DType} {
		v := r.tensor(first + j)
		if v == nil || v.DType != d || !v.Shape.Equal(extent.Fixed(r.directions)) && !v.Shape.Equal(extent.Fixed(r.directions, columns)) {
			r.fail("input %d must be %v, one for each of %d directions or one for each of %d columns too", first+j, d, r.directions, columns)
		}
	}
	if r.dtype != array.Float32 {
		r.fail("input %v is not f32, as layers with quantised weights need", r.tensor(0).Type)
	}
}

// quantisedWeights prepares weights whose scale and zero point are inputs k and k+1.
func (d *direction) quantisedWeights(w *Value, k int) quantisedWeights {
	zero := d.columns(k + 1)
	if d.failed() {
		return quantisedWeights{}
	}
	codes := d.narrow(w, zero)
	return quantisedWeights{codes, d.columnSums(codes, true), d.columns(k)}
}

// columns returns the direction's part of a scale or zero point: a single number, or one per column of the weights.
func (d *direction) columns(k int) *Value {
	if v := d.tensor(k); v != nil && v.Shape.Rank() == 2 {
		return d.own(k, 0, d.gates*d.size)
	}
	return d.own(k, 0)
}

// quantisedProduct quantises x by its range and multiplies it by weights.
func (d *direction) quantisedProduct(x *Value, w quantisedWeights) *Value {
	q := d.as((*expansion).dynamicQuantizeLinear, nil, x)
	d.check()
	codes, scale, zero := q[0].Tensor, q[1].Tensor, q[2].Tensor
	sums := d.lessZero(d.op(IntegerMatMul, nil, codes, w.codes), zero, w.sums)
	return d.op(Mul, nil, d.toFloat32(sums), d.op(Mul, nil, scale, w.scale))
}

// prepareQuantised multiplies the inputs of all steps at once. Those after the end of the longest sequence do not
// affect the range.
func (d *direction) prepareQuantised() {
	x := d.x
	if d.mask != nil {
		longest := d.op(ReduceMax, attributes{intOf("keepdims", 0)}, d.tensor(4))
		steps := d.expand(d.stepNumbers(), extent.ShapeOf(d.steps, d.batch, extent.Of(1)))
		steps = d.reshape(steps, extent.ShapeOf(d.at(d.steps), extent.Of(1)))
		x = d.op(Where, nil, d.op(Less, nil, steps, longest), x, d.scalar(d.dtype, 0))
	}
	part := d.quantisedProduct(x, d.quantisedWeights(d.w, 8))
	if d.bias != nil {
		both := d.op(Add, nil, d.gatesOf(d.bias, 0, 0, d.gates), d.gatesOf(d.bias, 1, 0, d.gates))
		part = d.op(Add, nil, part, both)
	}
	d.parts = []*Value{part}
	d.quantisedRec = d.quantisedWeights(d.rec, 10)
}

// quantisedLSTMStep quantises the hidden states of all sequences together. Finished sequences contribute zeros to
// the range.
func (d *direction) quantisedLSTMStep(t extent.Extent, hidden, cell *Value) (*Value, *Value) {
	z := d.part(0, t)
	if hidden != nil {
		if d.mask != nil && !d.reverse && d.shown != nil {
			hidden = d.shown
		}
		z = d.op(Add, nil, z, d.quantisedProduct(hidden, d.quantisedRec))
	}
	return d.lstmStates(z, cell)
}
