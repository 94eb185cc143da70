package machine

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/arm"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
)

// DotTypes are the operand types of a dot-product instruction. Few is set if the first operand has four-bit values,
// so that short sums of products fit into 16 bits.
type DotTypes struct {
	A, B array.DType
	Few  bool
}

// sum returns the accumulator type.
func (t DotTypes) sum() array.DType {
	if t.A.IsFloat() {
		return array.Float32
	}
	return array.Int32
}

// Dot describes an instruction that adds to each lane of a vector of sums the products of Terms neighbouring lanes of
// two operands in registers.
type Dot struct {
	DotTypes
	Terms, Lanes int64
}

// HasDot reports whether an instruction multiplies that many terms of two types, on its own or in 2x2 squares.
func HasDot(t DotTypes, terms int64) bool {
	return t.A.Bytes()*terms == array.Int32.Bytes() && len(t.instructions()) > 0 || !t.Few && arm.Squares(t.A, t.B).Terms == terms
}

func (t DotTypes) instructions() []ir.Alternative {
	return slices.Concat(x86.Dots(t.A, t.B, t.Few), arm.Dots(t.A, t.B, t.Few))
}

// dots holds the instructions that were asked for: a Dot's is under it, and the Dot under the instruction.
var dots sync.Map

// DotOf returns the description of the dot product that a statement calls.
func DotOf(st ir.Stmt) (d Dot, c *ir.Call, ok bool) {
	if c, ok = st.(*ir.Call); !ok {
		return d, nil, false
	}
	of, ok := dots.Load(c.Instruction)
	if !ok {
		return d, nil, false
	}
	return of.(Dot), c, true
}

// Instruction returns the instruction: the best one that a target has, or plain code.
func (d Dot) Instruction() *ir.Instruction {
	if i, ok := dots.Load(d); ok {
		return i.(*ir.Instruction)
	}
	i, loaded := dots.LoadOrStore(d, d.instruction())
	if !loaded {
		dots.Store(i, d)
	}
	return i.(*ir.Instruction)
}

func (d Dot) instruction() *ir.Instruction {
	name := fmt.Sprintf("tilth_dot_%v_%v_x%d", d.A, d.B, d.Lanes)
	if d.Few {
		name += "_few"
	}
	var list []ir.Alternative
	if d.A.Bytes()*d.Terms == array.Int32.Bytes() {
		list = d.instructions()
	}
	if len(list) == 0 {
		name += fmt.Sprintf("_%dterms", d.Terms)
	}
	sum := d.sum()
	t, bits := cprint.VectorName(sum, d.Lanes), cprint.VectorName(array.Uint32, d.Lanes)
	a, b := cprint.VectorName(d.A, d.Lanes*d.Terms), cprint.VectorName(d.B, d.Lanes*d.Terms)
	var body strings.Builder
	branch := "#if"
	for _, i := range list {
		if i.Lanes == d.Lanes {
			fmt.Fprintf(&body, "%s %s\n%s", branch, i.If, i.Code)
			branch = "#elif"
		}
	}
	if branch == "#if" {
		body.WriteString(ir.Plain + "  return acc;\n")
	} else {
		body.WriteString("#else\n" + ir.Plain + "  return acc;\n#endif\n")
	}
	text := strings.NewReplacer("{acc}", t, "{bits}", bits).Replace(body.String())
	i := &ir.Instruction{
		Name: strings.ReplaceAll(strings.TrimPrefix(name, "tilth_"), "_", "."),
		Params: []ir.Param{
			{Name: "acc", Use: ir.Update, Lanes: d.Lanes, Form: ir.Variable},
			{Name: "a", Use: ir.Read, In: ir.Register, Lanes: d.Lanes * d.Terms, Form: ir.Variable},
			{Name: "b", Use: ir.Read, In: ir.Register, Lanes: d.Lanes * d.Terms, Form: ir.Variable},
		},
		Text: "%[1]s = " + name + "(%[1]s, %[2]s, %[3]s);",
		Prelude: &ir.Prelude{
			Name:    name,
			Vectors: []ir.Vectors{{Type: sum, Lanes: d.Lanes}, {Type: array.Uint32, Lanes: d.Lanes}, {Type: d.A, Lanes: d.Lanes * d.Terms}, {Type: d.B, Lanes: d.Lanes * d.Terms}},
			Text:    fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%s acc, %s a, %s b) {\n%s}\n", t, name, t, a, b, text),
		},
	}
	i.Meaning = d.meaning(i)
	return i
}

// meaning adds the products of neighbours, term by term.
func (d Dot) meaning(i *ir.Instruction) *ir.Meaning {
	term, lane := &expr.Var{Name: "k", Extent: d.Terms}, &expr.Var{Name: "lane", Extent: d.Lanes}
	return ir.NewMeaning(i, func(f []ir.Formal) ir.Block {
		at := expr.AddE(expr.MulE(lane, expr.I(d.Terms)), term)
		step := ir.Add(f[0].Buffer, lane, expr.MulE(expr.To(d.sum(), f[1].At(at)), expr.To(d.sum(), f[2].At(at))))
		return ir.Nest(ir.Serial, ir.Nest(ir.Vector, ir.Block{step}, lane), term)
	}, ir.Flat("sums", d.sum(), d.Lanes), ir.Flat("a", d.A, d.Lanes*d.Terms), ir.Flat("b", d.B, d.Lanes*d.Terms))
}
