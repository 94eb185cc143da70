package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Internal operators: the elementwise parts of one step of a recurrent layer, for batch n and hidden size h. LSTM,
// GRU and RNN expand into them. Their attributes are "activations" (names), "alphas" and "betas" (a parameter of
// each activation) and "clip" (a bound on the input of an activation, 0 for none).
const (
	// Activation applies one activation to each element.
	Activation = "activation"
	// LSTMCell is the new cell state [n,h] from the gates z[n,4h] (input, output, forget, cell), the previous cell
	// state (zeros if omitted) and the peepholes [3h] (input, output, forget; optional). With the attribute
	// "input_forget" the forget gate is one minus the input gate.
	LSTMCell = "lstm_cell"
	// LSTMHidden is the new hidden state [n,h] from the gates z[n,4h], the new cell state and the peepholes.
	LSTMHidden = "lstm_hidden"
	// GRUReset is the hidden state [n,h], operand 1, times the reset gate of z[n,2h] (update, reset).
	GRUReset = "gru_reset"
	// GRUHidden is the new hidden state [n,h] from z[n,2h] (update, reset), the candidate before its activation
	// [n,h], and the previous hidden state (zeros if omitted).
	GRUHidden = "gru_hidden"
	// GRULinear is the new hidden state [n,h] if the reset gate comes after the product: from the input's part [n,3h]
	// and the hidden state's part [n,3h] (update, reset, candidate), and the previous hidden state (zeros if omitted).
	GRULinear = "gru_linear"
)

var recurrentDefs = []Def{
	unary(Activation, floats, func(n *Node, x expr.Expr) expr.Expr { return n.activation(0, x) }).internal(),
	step{LSTMCell, 4, 1, peepholeShapes, lstmCell}.def(),
	step{LSTMHidden, 4, 2, peepholeShapes, lstmHidden}.def(),
	step{GRUReset, 2, 2, stateShapes, func(n *Node, g gates) expr.Expr {
		return expr.MulE(n.activation(0, g.gate(0, 1)), g.at(1))
	}}.def(),
	step{GRUHidden, 2, 2, stateShapes, func(n *Node, g gates) expr.Expr {
		return mixed(n.activation(0, g.gate(0, 0)), n.activation(1, g.at(1)), g.at(2))
	}}.def(),
	step{GRULinear, 3, 2, linearShapes, func(n *Node, g gates) expr.Expr {
		update := n.activation(0, expr.AddE(g.gate(0, 0), g.gate(1, 0)))
		reset := n.activation(0, expr.AddE(g.gate(0, 1), g.gate(1, 1)))
		candidate := n.activation(1, expr.AddE(g.gate(0, 2), expr.MulE(reset, g.gate(1, 2))))
		return mixed(update, candidate, g.at(2))
	}}.def(),
}

// step is a part of a step whose operand 0 holds several gates side by side.
type step struct {
	name  string
	gates int64
	minIn int
	// shapes returns the shapes of operands 1 and 2, given those of operand 0 and the result.
	shapes func(z, out extent.Shape) [2]extent.Shape
	f      func(n *Node, g gates) expr.Expr
}

func stateShapes(_, out extent.Shape) [2]extent.Shape { return [2]extent.Shape{out, out} }

func linearShapes(z, out extent.Shape) [2]extent.Shape { return [2]extent.Shape{z, out} }

func peepholeShapes(_, out extent.Shape) [2]extent.Shape {
	return [2]extent.Shape{out, extent.Fixed(3 * out.Max()[1])}
}

func (s step) def() Def {
	return Def{
		Name: s.name, Internal: true, Kind: Injective, MinIn: s.minIn, MaxIn: 3, Layout: rowMajorResult, Infer: s.infer,
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			operands := make([]Operand, len(in))
			for k, o := range in {
				if n.Has(k) {
					operands[k] = l.Readable(o)
				}
			}
			return l.Lazy(n.Out, RowMajor(2), func(i []expr.Expr) expr.Expr {
				return expr.To(n.Out.DType, s.f(n, gates{n, operands, n.Out.Shape.Max()[1], i}))
			})
		},
	}
}

func (s step) infer(n *Node) (Type, error) {
	d := Get(floats(n))
	z := n.In[0].Shape
	if z.Rank() != 2 || z.At(1).IsOpen() || z.Max()[1]%s.gates != 0 {
		return Type{}, fmt.Errorf("%v are not %d gates side by side", n.In[0].Type, s.gates)
	}
	out := Type{d, extent.ShapeOf(z.At(0), extent.Of(z.Max()[1]/s.gates))}
	probes := make([]Operand, len(n.In))
	for k, v := range n.In {
		if !n.Has(k) {
			continue
		}
		if want := s.shapes(z, out.Shape); k > 0 && !v.Shape.Equal(want[k-1]) {
			return Type{}, fmt.Errorf("input %d is %v, want %v", k, v.Type, want[k-1])
		}
		probes[k] = Operand{Type: v.Type, at: func([]expr.Expr) expr.Expr { return expr.Zero(d) }}
	}
	// Reading the attributes here reports invalid ones.
	s.f(n, gates{n, probes, out.Shape.Max()[1], []expr.Expr{expr.I(0), expr.I(0)}})
	return out, nil
}

// gates reads the operands of a step at one element of its result.
type gates struct {
	n      *Node
	in     []Operand
	hidden int64
	// i is the index of the element: batch and position in the hidden state.
	i []expr.Expr
}

// gate returns gate k of operand j, which has several side by side.
func (g gates) gate(j, k int) expr.Expr {
	return wide(g.in[j].At(g.i[0], expr.AddE(g.i[1], expr.I(int64(k)*g.hidden))))
}

// at returns operand k; nil if it was omitted.
func (g gates) at(k int) expr.Expr {
	if !g.n.Has(k) {
		return nil
	}
	return wide(g.in[k].At(g.i...))
}

// peephole adds peephole k times the cell state to x.
func (g gates) peephole(x expr.Expr, k int, cell expr.Expr) expr.Expr {
	if !g.n.Has(2) || cell == nil {
		return x
	}
	p := wide(g.in[2].At(expr.AddE(g.i[1], expr.I(int64(k)*g.hidden))))
	return expr.AddE(x, expr.MulE(p, cell))
}

func lstmCell(n *Node, g gates) expr.Expr {
	before := g.at(1)
	input := n.activation(0, g.peephole(g.gate(0, 0), 0, before))
	added := expr.MulE(input, n.activation(1, g.gate(0, 3)))
	if before == nil {
		return added
	}
	forget := expr.SubE(like(input, 1), input)
	if n.Int("input_forget", 0) == 0 {
		forget = n.activation(0, g.peephole(g.gate(0, 2), 2, before))
	}
	return expr.AddE(expr.MulE(forget, before), added)
}

func lstmHidden(n *Node, g gates) expr.Expr {
	cell := g.at(1)
	output := n.activation(0, g.peephole(g.gate(0, 1), 1, cell))
	return expr.MulE(output, n.unclipped(2, cell))
}

// mixed returns (1-update)*candidate + update*before.
func mixed(update, candidate, before expr.Expr) expr.Expr {
	e := expr.MulE(expr.SubE(like(update, 1), update), candidate)
	if before == nil {
		return e
	}
	return expr.AddE(e, expr.MulE(update, before))
}
