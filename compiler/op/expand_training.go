package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
)

// trainingDomain contains the training optimisers.
const trainingDomain = "ai.onnx.preview.training"

// trainingDefs are the optimisers. Their inputs are the rate, the update count, and for each optimised tensor its
// value, its gradient and its state; their outputs the new values and states.
var trainingDefs = []Def{
	training("Adagrad", 5, func(e *expansion) []*Item { return e.optimise(1, (*optimiser).adagrad) }),
	training("Adam", 6, func(e *expansion) []*Item { return e.optimise(2, (*optimiser).adam) }),
	training("Momentum", 5, func(e *expansion) []*Item { return e.optimise(1, (*optimiser).momentum) }),
}

func training(name string, minIn int, f func(e *expansion) []*Item) Def {
	d := def(name, minIn, -1, f)
	d.Domain = trainingDomain
	return d
}

// optimiser expands the update of one tensor.
type optimiser struct {
	*expansion
	dtype array.DType
	// rate is the initial rate; updates is their count, in the tensors' type.
	rate, updates *Value
}

// optimise applies update to each tensor x with its gradient g and its states. Inputs and outputs are ordered by
// kind, then by tensor.
func (e *expansion) optimise(states int, update func(o *optimiser, x, g *Value, state []*Value) []*Value) []*Item {
	in := e.tensors()
	count := (len(in) - 2) / (2 + states)
	if len(in) != 2+count*(2+states) {
		e.fail("%d inputs are not a rate, a count and %d for each tensor", len(in), 2+states)
	}
	outs := make([]*Item, count*(1+states))
	for k := range count {
		var own []*Value // value, gradient, states
		for kind := range 2 + states {
			v := in[2+kind*count+k]
			if v == nil {
				e.fail("input %d is missing", 2+kind*count+k)
			}
			own = append(own, v)
		}
		d := own[0].DType
		o := &optimiser{expansion: e, dtype: d, rate: e.cast(d, in[0]), updates: e.cast(d, in[1])}
		for kind, v := range update(o, own[0], own[1], own[2:]) {
			outs[kind*count+k] = tensorItem(v)
		}
	}
	return outs
}

func (o *optimiser) number(v float64) *Value           { return o.scalar(o.dtype, v) }
func (o *optimiser) add(a, b *Value) *Value            { return o.op(Add, nil, a, b) }
func (o *optimiser) sub(a, b *Value) *Value            { return o.op(Sub, nil, a, b) }
func (o *optimiser) mul(a, b *Value) *Value            { return o.op(Mul, nil, a, b) }
func (o *optimiser) div(a, b *Value) *Value            { return o.op(Div, nil, a, b) }
func (o *optimiser) sqrt(a *Value) *Value              { return o.op(Sqrt, nil, a) }
func (o *optimiser) scaled(f float64, v *Value) *Value { return o.mul(v, o.number(f)) }

// regularised returns the gradient plus that of the squared norm of x.
func (o *optimiser) regularised(x, g *Value) *Value {
	factor := o.node.Float("norm_coefficient", 0)
	if factor == 0 {
		return g
	}
	return o.add(g, o.scaled(factor, x))
}

// adagrad is Duchi et al. 2011, with a decaying rate.
func (o *optimiser) adagrad(x, g *Value, state []*Value) []*Value {
	decay := o.add(o.number(1), o.scaled(o.node.Float("decay_factor", 0), o.updates))
	g = o.regularised(x, g)
	sum := o.add(state[0], o.mul(g, g))
	step := o.div(o.mul(o.div(o.rate, decay), g), o.add(o.sqrt(sum), o.number(o.node.Float("epsilon", 1e-6))))
	return []*Value{o.sub(x, step), sum}
}

// adam is Kingma and Ba 2015; the first update has the plain rate.
func (o *optimiser) adam(x, g *Value, state []*Value) []*Value {
	if o.node.Attrs["epsilon"] == nil {
		o.fail("attribute \"epsilon\" is missing, and ONNX's definition and test disagree on its default: give it")
	}
	alpha, beta := o.node.Float("alpha", 0.9), o.node.Float("beta", 0.999)
	g = o.regularised(x, g)
	mean := o.add(o.scaled(alpha, state[0]), o.scaled(1-alpha, g))
	square := o.add(o.scaled(beta, state[1]), o.scaled(1-beta, o.mul(g, g)))
	power := func(base float64) *Value {
		return o.sub(o.number(1), o.op(Pow, nil, o.number(base), o.updates))
	}
	adjusted := o.div(o.mul(o.rate, o.sqrt(power(beta))), power(alpha))
	rate := o.op(Where, nil, o.started(), adjusted, o.rate)
	step := o.div(o.mul(rate, mean), o.add(o.sqrt(square), o.number(o.node.Float("epsilon", 0))))
	x = o.scaled(1-o.node.Float("norm_coefficient_post", 0), o.sub(x, step))
	return []*Value{x, mean, square}
}

// started returns the condition that there were updates before.
func (o *optimiser) started() *Value { return o.op(Greater, nil, o.updates, o.number(0)) }

// momentum is gradient descent with momentum, by Nesterov's rule if the attribute "mode" selects it.
func (o *optimiser) momentum(x, g *Value, state []*Value) []*Value {
	alpha := o.node.Float("alpha", 0)
	g = o.regularised(x, g)
	fresh := o.op(Where, nil, o.started(), o.number(o.node.Float("beta", 0)), o.number(1))
	velocity := o.add(o.scaled(alpha, state[0]), o.mul(fresh, g))
	step := velocity
	switch mode := o.node.Text("mode", ""); mode {
	case "standard":
	case "nesterov":
		step = o.add(g, o.scaled(alpha, velocity))
	default:
		o.fail("mode %q is not standard or nesterov", mode)
	}
	return []*Value{o.sub(x, o.mul(o.rate, step)), velocity}
}
