package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// expandRecurrentDefs compute recurrent layers by one matrix product of the inputs of all steps and, in each step, a
// product with the hidden state and elementwise operators. The steps are a loop, or unrolled if they are few; their
// kernels are the same tasks.
var expandRecurrentDefs = []Def{
	def("LSTM", 3, 8, func(e *expansion) []*Item { return e.recurrent(lstmKind) }),
	def("GRU", 3, 6, func(e *expansion) []*Item { return e.recurrent(gruKind) }),
	def("RNN", 3, 6, func(e *expansion) []*Item { return e.recurrent(rnnKind) }),
	ofRuntime(def("DynamicQuantizeLSTM", 3, 12, func(e *expansion) []*Item { return e.recurrent(quantisedLSTMKind) })),
}

// recurrentKind holds the differences between the layers.
type recurrentKind struct {
	gates       int64
	activations []string // of one direction
	// hasCell is set if there is a cell state beside the hidden one.
	hasCell bool
	// inBytes is set if weights are bytes with scales and zero points, and have the gates on their last axis.
	inBytes bool
	// prepare adds the computations that a direction shares between steps. step returns the new states from the
	// previous ones, nil for zeros, given the number of the step in the input.
	prepare func(d *direction)
	step    func(d *direction, t extent.Extent, hidden, cell *Value) (*Value, *Value)
}

var (
	lstmKind = recurrentKind{
		gates: 4, activations: []string{"Sigmoid", "Tanh", "Tanh"}, hasCell: true,
		prepare: (*direction).prepareOne, step: (*direction).lstmStep,
	}
	gruKind = recurrentKind{gates: 3, activations: []string{"Sigmoid", "Tanh"}, prepare: (*direction).prepareGRU, step: (*direction).gruStep}
	rnnKind = recurrentKind{gates: 1, activations: []string{"Tanh"}, prepare: (*direction).prepareOne, step: (*direction).rnnStep}

	quantisedLSTMKind = recurrentKind{
		gates: 4, activations: []string{"Sigmoid", "Tanh", "Tanh"}, hasCell: true, inBytes: true,
		prepare: (*direction).prepareQuantised, step: (*direction).quantisedLSTMStep,
	}
)

// recurrentLayer holds the sizes of a layer: steps, batch, inputs, size of the hidden state and directions.
type recurrentLayer struct {
	*expansion
	recurrentKind
	inputs, size, directions int64
	steps, batch             extent.Extent
	dtype                    array.DType
	batchFirst               bool
	// mask is true, in bool[steps,batch,1], where a sequence includes a step; nil if all sequences have all steps.
	mask *Value
}

// recurrent returns the outputs: the hidden states of all steps, the last hidden state and the last cell state.
func (e *expansion) recurrent(kind recurrentKind) []*Item {
	r := &recurrentLayer{expansion: e, recurrentKind: kind}
	r.readSizes()
	e.check()
	r.mask = r.stepMask()
	x := e.tensor(0)
	if r.batchFirst {
		x = e.op(Transpose, attributes{intsOf("perm", 1, 0, 2)}, x)
	}
	x = e.reshape(x, extent.ShapeOf(r.at(r.steps), extent.Of(r.inputs)))
	var hidden, cell []*Value
	var all [][]*Value // hidden states by direction, of each step or of all
	for k := range r.directions {
		d := r.direction(k, x)
		e.check()
		all = append(all, d.run())
		hidden, cell = append(hidden, d.hidden), append(cell, d.cell)
	}
	outs := []*Item{nil, tensorItem(r.states(hidden)), nil}
	if e.wants(0) {
		outs[0] = tensorItem(r.sequence(all))
	}
	if kind.hasCell {
		outs[2] = tensorItem(r.states(cell))
	}
	return outs
}

// readSizes reads the sizes and checks that the operands agree.
func (r *recurrentLayer) readSizes() {
	n := r.node
	r.batchFirst = n.Int("layout", 0) != 0
	x, w, rec := r.tensor(0), r.tensor(1), r.tensor(2)
	if r.failed() {
		return
	}
	if x.Shape.Rank() != 3 || w.Shape.Rank() != 3 || rec.Shape.Rank() != 3 {
		r.fail("input %v and weights %v and %v do not have rank 3", x.Type, w.Type, rec.Type)
	}
	steps, batch := 0, 1
	if r.batchFirst {
		steps, batch = 1, 0
	}
	r.dtype, r.steps, r.batch, r.inputs, r.size = x.DType, x.Shape.At(steps), x.Shape.At(batch), fixedAt(x, 2), fixedAt(rec, 2)
	if r.inBytes {
		r.size = fixedAt(rec, 1)
	}
	r.directions = 1
	switch text := n.Text("direction", "forward"); text {
	case "forward", "reverse":
	case "bidirectional":
		r.directions = 2
	default:
		r.fail("direction %q is not forward, reverse or bidirectional", text)
	}
	if given := n.Int("hidden_size", r.size); given != r.size {
		r.fail("hidden_size %d does not fit the weights %v", given, rec.Type)
	}
	if r.inBytes {
		r.wantQuantised(1, r.inputs, 8)
		r.wantQuantised(2, r.size, 10)
	} else {
		r.want(1, r.directions, r.gates*r.size, r.inputs)
		r.want(2, r.directions, r.gates*r.size, r.size)
	}
	r.want(3, r.directions, 2*r.gates*r.size)
	for k := 5; k < 7; k++ {
		state := []extent.Extent{extent.Of(r.directions), r.batch, extent.Of(r.size)}
		if r.batchFirst {
			state[0], state[1] = state[1], state[0]
		}
		r.wantShape(k, extent.ShapeOf(state...))
	}
	r.want(7, r.directions, 3*r.size)
	if min(r.steps.Max(), r.batch.Max(), r.size, r.inputs) == 0 {
		r.fail("input %v and weights %v have no elements", x.Type, rec.Type)
	}
	if !r.dtype.IsFloat() {
		r.fail("input %v is not floating point", x.Type)
	}
}

// want fails unless input k, if given, has the type of the first input and the given shape.
func (r *recurrentLayer) want(k int, shape ...int64) { r.wantShape(k, extent.Fixed(shape...)) }

func (r *recurrentLayer) wantShape(k int, shape extent.Shape) {
	v := r.tensor(k)
	if v != nil && (v.DType != r.dtype || !v.Shape.Equal(shape)) {
		r.fail("input %d is %v, want %v", k, v.Type, Type{DType: r.dtype, Shape: shape})
	}
}

// at returns the place of a step where all steps of all sequences are in a row.
func (r *recurrentLayer) at(step extent.Extent) extent.Extent { return r.batch.Times(step) }

// stepMask compares the lengths of the sequences with the step numbers, for all steps at once.
func (r *recurrentLayer) stepMask() *Value {
	lengths := r.tensor(4)
	if lengths == nil {
		return nil
	}
	if lengths.DType != array.Int32 || !lengths.Shape.Equal(extent.ShapeOf(r.batch)) {
		r.fail("input 4 (sequence_lens) is %v, want i32[%v]", lengths.Type, r.batch)
	}
	if a := lengths.Const; a != nil {
		full := true
		for k := range a.Len() {
			full = full && a.Int(k) >= r.steps.Max()
		}
		if full {
			return nil
		}
	}
	return r.op(Less, nil, r.stepNumbers(), r.reshape(lengths, ones(3).With(1, r.batch)))
}

// stepNumbers returns 0, 1, 2, ... as i32[steps,1,1].
func (r *recurrentLayer) stepNumbers() *Value {
	numbers := r.op(Range, nil, r.scalar(array.Int64, 0), r.count(r.steps), r.scalar(array.Int64, 1))
	return r.reshape(r.cast(array.Int32, numbers), ones(3).With(0, r.steps))
}

// maskAt returns a bool[batch,1] of the sequences that include a step.
func (r *recurrentLayer) maskAt(t extent.Extent) *Value {
	return r.reshape(r.span(r.mask, 0, t, t.Plus(extent.Of(1))), ones(2).With(0, r.batch))
}

// states joins the last states of the directions.
func (r *recurrentLayer) states(of []*Value) *Value {
	axis := int64(0)
	if r.batchFirst {
		axis = 1
	}
	parts := make([]*Value, len(of))
	for k, v := range of {
		parts[k] = r.op(Unsqueeze, nil, v, r.ints(axis))
	}
	return r.join(axis, parts)
}

// sequence joins the hidden states: those of each step by direction, or one value for all steps of a direction. Those
// of an open batch are joined along an axis of their own, where their places are fixed.
func (r *recurrentLayer) sequence(all [][]*Value) *Value {
	shape := extent.ShapeOf(r.steps, extent.Of(r.directions), r.batch, extent.Of(r.size))
	var y *Value
	if steps, ok := r.steps.Const(); ok && int64(len(all[0])) == steps {
		var parts []*Value
		for t := range steps {
			for _, of := range all {
				if r.batch.IsOpen() {
					of[t] = r.op(Unsqueeze, nil, of[t], r.ints(0))
				}
				parts = append(parts, of[t])
			}
		}
		y = r.reshape(r.join(0, parts), shape)
	} else {
		parts := make([]*Value, len(all))
		for k, of := range all {
			parts[k] = r.reshape(of[0], shape.With(1, extent.Of(1)))
		}
		y = r.join(1, parts)
	}
	if r.batchFirst {
		return r.op(Transpose, attributes{intsOf("perm", 2, 0, 1, 3)}, y)
	}
	return y
}

func (r *recurrentLayer) join(axis int64, parts []*Value) *Value {
	if len(parts) == 1 {
		return parts[0]
	}
	return r.op(Concat, attributes{intOf("axis", axis)}, parts...)
}

// activationAttributes returns the activations of a direction as attributes of its elementwise operators.
func (r *recurrentLayer) activationAttributes(direction int64) attributes {
	n := r.node
	count := len(r.activations)
	names := n.Texts("activations")
	if len(names) == 0 {
		names = slices.Repeat(r.activations, int(r.directions))
	}
	if len(names) != count*int(r.directions) {
		r.fail("%d activations, want %d", len(names), count*int(r.directions))
	}
	given := map[string][]float32{"alphas": n.Floats("activation_alpha"), "betas": n.Floats("activation_beta")}
	parameters := map[string][]float32{"alphas": nil, "betas": nil}
	for _, name := range names {
		defaults := ActivationDefaults(name)
		for key, list := range given {
			def, taken := defaults[key]
			if taken && len(list) > 0 {
				def, given[key] = list[0], list[1:]
			}
			parameters[key] = append(parameters[key], def)
		}
	}
	from := int(direction) * count
	attrs := attributes{
		{Name: "activations", Type: onnx.AttrStrings, Strings: names[from : from+count]},
		floatOf("clip", n.Float("clip", 0)), intOf("input_forget", n.Int("input_forget", 0)),
	}
	for _, key := range []string{"alphas", "betas"} {
		attrs = append(attrs, &onnx.Attribute{Name: key, Type: onnx.AttrFloats, Floats: parameters[key][from : from+count]})
	}
	return attrs
}
