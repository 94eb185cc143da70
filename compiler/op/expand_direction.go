package op

import (
	"github.com/tilth-dev/tilth/compiler/extent"
)

// direction is one direction of a recurrent layer: its weights, and its state in a step.
type direction struct {
	*recurrentLayer
	index   int64
	reverse bool
	attrs   attributes
	// x [steps*batch, inputs] holds the inputs of all steps; w, rec and bias are the direction's weights, bias
	// possibly nil.
	x, w, rec, bias, peepholes *Value
	// parts holds the products of x with the input weights, for all steps; recs and recBiases hold the recurrent
	// weights of a step, and their biases where these cannot be folded into the parts.
	parts, recs, recBiases []*Value
	// quantisedRec holds the recurrent weights of a layer with 8-bit weights.
	quantisedRec quantisedWeights
	// hidden and cell are the states [batch, hidden]; nil for zeros. shown is the hidden state of the last step as it
	// appears in the output: zero for finished sequences.
	hidden, cell, shown *Value
}

func (r *recurrentLayer) direction(k int64, x *Value) *direction {
	d := &direction{recurrentLayer: r, index: k, x: x, attrs: r.activationAttributes(k)}
	d.reverse = k == 1 || r.node.Text("direction", "forward") == "reverse"
	if r.inBytes {
		d.w, d.rec = d.own(1, 0, r.inputs, r.gates*r.size), d.own(2, 0, r.size, r.gates*r.size)
	} else {
		d.w, d.rec = d.own(1, 0, r.gates*r.size, r.inputs), d.own(2, 0, r.gates*r.size, r.size)
	}
	d.bias = d.own(3, 0, 2*r.gates*r.size)
	d.peepholes = d.own(7, 0, 3*r.size)
	axis := int64(0)
	if r.batchFirst {
		axis = 1
	}
	d.hidden, d.cell = d.initial(5, axis), d.initial(6, axis)
	if !r.failed() {
		r.prepare(d)
	}
	return d
}

// own returns the direction's part of input k along an axis; nil if the input was omitted.
func (d *direction) own(k int, axis int64, shape ...int64) *Value {
	return d.ownOf(k, axis, extent.Fixed(shape...))
}

func (d *direction) ownOf(k int, axis int64, shape extent.Shape) *Value {
	v := d.tensor(k)
	if v == nil {
		return nil
	}
	if d.directions > 1 {
		v = d.slice(v, axis, d.index, d.index+1)
	}
	return d.reshape(v, shape)
}

// initial returns the state before the first step; nil if it is zero, so that the first step needs no product.
func (d *direction) initial(k int, axis int64) *Value {
	if isZero(d.tensor(k)) {
		return nil
	}
	return d.ownOf(k, axis, extent.ShapeOf(d.batch, extent.Of(d.size)))
}

// run adds the steps, and returns the hidden states that the output shows: those of each step, or one value
// [steps, batch, hidden].
func (d *direction) run() []*Value {
	if y := d.loop(); y != nil {
		return y
	}
	steps := d.steps.Max()
	d.Budget().Bytes(32 * steps) // lists of steps
	all := make([]*Value, steps)
	for k := range steps {
		t := k
		if d.reverse {
			t = steps - 1 - k
		}
		all[t] = d.advance(extent.Of(t))
	}
	return all
}

// loop adds the steps as a loop, and returns the hidden states of all; nil if they must be unrolled. The first of a
// known number of steps precedes the loop if the states are zeros, since it needs no product with them.
func (d *direction) loop() []*Value {
	steps, isConst := d.steps.Const()
	if isConst && (steps <= maxUnrolled+1 || !d.RunsLoops() || d.inBytes && d.mask != nil) {
		return nil
	}
	before := *d
	var first *Value
	count, last, one := d.steps, d.steps.Minus(extent.Of(1)), extent.Of(1)
	at := func(k extent.Extent) extent.Extent {
		if d.reverse {
			return last.Minus(k)
		}
		return k
	}
	begun := extent.Of(0)
	if isConst && d.hidden == nil {
		first = d.expansion.part(d.advance(at(begun)))
		count, begun = last, one
	}
	zero := func(v *Value) *Value {
		if v == nil {
			return d.expand(d.scalar(d.dtype, 0), extent.ShapeOf(d.batch, extent.Of(d.size)))
		}
		return v
	}
	init := []*Value{zero(d.hidden)}
	if d.hasCell {
		init = append(init, zero(d.cell))
	}
	after, stacked, ok := d.loopOf(Loop{Count: count, Init: init, Body: func(step extent.Extent, states []*Value) (made Iteration, err error) {
		if d.hidden = states[0]; d.hasCell {
			d.cell = states[1]
		}
		shown := d.advance(at(step.Plus(begun)))
		if made.Next = []*Value{d.hidden}; d.hasCell {
			made.Next = append(made.Next, d.cell)
		}
		place := step
		if d.reverse {
			place = count.Minus(one).Minus(step)
		}
		if d.wants(0) {
			made.Parts, made.At = []*Value{d.expansion.part(shown)}, []extent.Extent{place}
		}
		return made, nil
	}})
	if !ok {
		*d = before
		return nil
	}
	if d.hidden = after[0]; d.hasCell {
		d.cell = after[1]
	}
	switch {
	case len(stacked) == 0:
		return []*Value{nil}
	case first == nil:
		return stacked
	case d.reverse:
		return []*Value{d.join(0, []*Value{stacked[0], first})}
	}
	return []*Value{d.join(0, []*Value{first, stacked[0]})}
}

// advance adds a step, and returns its hidden state as the output shows it.
func (d *direction) advance(t extent.Extent) *Value {
	hidden, cell := d.step(d, t, d.hidden, d.cell)
	d.shown = hidden
	if d.mask != nil {
		mask := d.maskAt(t)
		d.shown = d.op(Where, nil, mask, hidden, d.scalar(d.dtype, 0))
		hidden = d.keep(mask, hidden, d.hidden)
		if d.hasCell {
			cell = d.keep(mask, cell, d.cell)
		}
	}
	d.hidden, d.cell = hidden, cell
	return d.shown
}

// keep returns the new state for sequences that include the step, and the previous one, or zeros, for others.
func (d *direction) keep(mask, state, before *Value) *Value {
	if before == nil {
		before = d.scalar(d.dtype, 0)
	}
	return d.op(Where, nil, mask, state, before)
}

// gatesOf returns rows from*hidden to to*hidden of weights, or of the given half of a bias (0 for the input's, 1
// for the recurrent one).
func (d *direction) gatesOf(v *Value, half, from, to int64) *Value {
	if v == nil {
		return nil
	}
	begin := half * d.gates * d.size
	if from == 0 && to == d.gates && half == 0 && v != d.bias {
		return v
	}
	return d.slice(v, 0, begin+from*d.size, begin+to*d.size)
}

// addPart adds the product of all inputs with the weights of gates from to to, with the biases; the recurrent
// biases are included if both is set.
func (d *direction) addPart(from, to int64, both bool) {
	bias := d.gatesOf(d.bias, 0, from, to)
	if bias != nil && both {
		bias = d.op(Add, nil, bias, d.gatesOf(d.bias, 1, from, to))
	}
	d.parts = append(d.parts, d.dense(d.x, d.gatesOf(d.w, 0, from, to), bias))
}

// dense returns x times the transposed weights, plus c.
func (d *direction) dense(x, weights, c *Value) *Value {
	return d.op(Gemm, attributes{intOf("transB", 1)}, x, weights, c)
}

// part returns step t of part k.
func (d *direction) part(k int, t extent.Extent) *Value {
	if d.steps.Is(1) {
		return d.parts[k]
	}
	return d.span(d.parts[k], 0, d.at(t), d.at(t.Plus(extent.Of(1))))
}

// prepareOne prepares layers with a single recurrent product per step.
func (d *direction) prepareOne() {
	d.addPart(0, d.gates, true)
}

// summed returns the part of a step plus the hidden state times recurrent weights.
func (d *direction) summed(k int, t extent.Extent, hidden, weights *Value) *Value {
	if hidden == nil {
		return d.part(k, t)
	}
	return d.dense(hidden, weights, d.part(k, t))
}

func (d *direction) rnnStep(t extent.Extent, hidden, _ *Value) (*Value, *Value) {
	return d.op(Activation, d.attrs, d.summed(0, t, hidden, d.rec)), nil
}

func (d *direction) lstmStep(t extent.Extent, hidden, cell *Value) (*Value, *Value) {
	return d.lstmStates(d.summed(0, t, hidden, d.rec), cell)
}

// lstmStates returns the new hidden and cell states, from gates before their activations.
func (d *direction) lstmStates(z, cell *Value) (*Value, *Value) {
	cell = d.op(LSTMCell, d.attrs, z, cell, d.peepholes)
	return d.op(LSTMHidden, d.attrs, z, cell, d.peepholes), cell
}

// prepareGRU separates the bias of the candidate's recurrent product if the reset gate comes after it.
func (d *direction) prepareGRU() {
	if d.resetsAfter() {
		zero := d.scalar(d.dtype, 0)
		d.addPart(0, d.gates, false)
		d.recs = []*Value{d.rec}
		d.recBiases = []*Value{d.gatesOf(d.bias, 1, 0, d.gates)}
		if d.bias == nil {
			d.recBiases[0] = d.expand(zero, extent.Fixed(d.gates*d.size))
		}
		return
	}
	d.addPart(0, 2, true)
	d.addPart(2, 3, true)
	d.recs = []*Value{d.gatesOf(d.rec, 0, 0, 2), d.gatesOf(d.rec, 0, 2, 3)}
}

func (d *direction) resetsAfter() bool { return d.node.Int("linear_before_reset", 0) != 0 }

func (d *direction) gruStep(t extent.Extent, hidden, _ *Value) (*Value, *Value) {
	if d.resetsAfter() {
		product := d.recBiases[0]
		if hidden != nil {
			product = d.dense(hidden, d.recs[0], product)
		} else {
			product = d.expand(product, extent.ShapeOf(d.batch, extent.Of(d.gates*d.size)))
		}
		return d.op(GRULinear, d.attrs, d.part(0, t), product, hidden), nil
	}
	z := d.summed(0, t, hidden, d.recs[0])
	candidate := d.part(1, t)
	if hidden != nil {
		candidate = d.dense(d.op(GRUReset, d.attrs, z, hidden), d.recs[1], candidate)
	}
	return d.op(GRUHidden, d.attrs, z, candidate, hidden), nil
}
