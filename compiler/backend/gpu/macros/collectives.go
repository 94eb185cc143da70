package macros

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// collectives returns the simulator's functions for the instructions of warps and warpgroups, which compute their
// meanings. Accesses to shared memory are checked as the parameters say.
func collectives() string {
	var list []*ir.Instruction
	for _, turned := range []bool{false, true} {
		for _, count := range []int64{1, 2, 4} {
			list = append(list, nvidia.LoadMatrices(count, turned))
		}
	}
	for f := schedule.TF32; f <= schedule.WarpgroupI8; f++ {
		types := [][2]array.DType{{}}
		if f.Sum() == array.Int32 {
			types = [][2]array.DType{{array.Int8, array.Int8}, {array.Int8, array.Uint8}, {array.Uint8, array.Int8}, {array.Uint8, array.Uint8}}
		}
		for _, t := range types {
			switch {
			case f.Warpgroup():
				for columns := int64(16); nvidia.WarpgroupColumns(columns); columns *= 2 {
					list = append(list, nvidia.MultiplyShared(f, columns, nvidia.Factor{Type: t[0]}, nvidia.Factor{Type: t[1]}))
				}
			case f != schedule.TF32Compensated: // made of products in TF32
				list = append(list, nvidia.Multiply(f, t[0], t[1]))
			}
		}
	}
	var b strings.Builder
	for _, i := range list {
		b.WriteString(newCollective(i).function())
	}
	// Cards promise no order of sums, and no contraction.
	return strings.NewReplacer("tilth_from_bf16_f32x1", "sim_bf16", "tilth_fma_f32x1", "sim_multiply_add").Replace(b.String())
}

// collective prints the function of an instruction.
type collective struct {
	*ir.Instruction
	scalars cprint.Scalars
	// elements returns the element of an operand at an index.
	elements map[*expr.Tensor]func(index expr.Expr) string
	body     ir.Block
	out      strings.Builder
}

func newCollective(i *ir.Instruction) *collective {
	c := &collective{Instruction: i, body: i.Meaning.Body, elements: map[*expr.Tensor]func(expr.Expr) string{}}
	c.scalars = cprint.Scalars{
		Helpers: cprint.Helpers{Declarations: &cprint.Declarations{}, Dialect: Text},
		Var:     func(v *expr.Var) string { return v.Name },
		Load:    func(l *expr.Load) string { return c.elements[l.Tensor](l.Index[0]) },
		Other: func(e expr.Expr) string {
			a := e.(*ir.Apply)
			return fmt.Sprintf(a.Text, c.scalars.Text(a.Values[0]))
		},
	}
	return c
}

// function returns sim_NAME, which gets the operands as the simulator keeps them: those of lanes in struct sim_lane,
// or those of a warpgroup in struct sim_product.
func (c *collective) function() string {
	name, args, _ := strings.Cut(c.Text, "(")
	name = "sim_" + strings.ToLower(name)
	if c.Starts == nil {
		fmt.Fprintf(&c.out, "SIM_STATIC void %s(struct sim_thread *first, struct sim_warp *w) {\n", name)
	} else {
		words := strings.Split(args, ", ") // columns and type
		name += "_" + words[0] + "_" + words[1]
		fmt.Fprintf(&c.out, "SIM_STATIC void %s_multiply(const struct sim_block *block, const struct sim_product *p, void *values) {\n", name)
	}
	for k, p := range c.Params {
		if f := c.Meaning.Operands[k]; p.Use == ir.Read {
			c.read(f, p)
		} else {
			c.written(f)
		}
	}
	c.block(c.body)
	c.out.WriteString("}\n")
	if c.Starts != nil {
		terms := c.Meaning.Operands[1].Buffer.Elements()
		fmt.Fprintf(&c.out, "static const struct sim_product_type %s __attribute__((unused)) = {%d, %[1]s_multiply};\n", name, terms)
	}
	return c.out.String()
}

// written prints where the elements of each thread are that the instruction writes.
func (c *collective) written(f ir.Formal) {
	t, scalar := f.Buffer.Tensor, cprint.TypeOf(f.Buffer.Tensor.DType).Scalar
	if c.Starts != nil {
		fmt.Fprintf(&c.out, "  %s (*%s)[2][SIM_THREAD_COLUMNS] = values;\n", scalar, t.Name)
	} else {
		fmt.Fprintf(&c.out, "  %s *%s[SIM_WARP];\n  for (int l = 0; l < SIM_WARP; l++) %[2]s[l] = w->lane[l].result;\n", scalar, t.Name)
	}
	c.elements[t] = func(index expr.Expr) string {
		thread, row, place := f.Place(index)
		at, line, column := c.scalars.Text(thread.Expr()), c.scalars.Text(row.Expr()), c.scalars.Text(place.Expr())
		if c.Starts != nil {
			return fmt.Sprintf("%s[%s][%s][%s]", t.Name, at, line, column)
		}
		return fmt.Sprintf("%s[%s][%s * w->lane[%s].argument + %s]", t.Name, at, line, at, column)
	}
}

// read prints copies of the elements of an operand by thread, or by row, as the numbers that are computed with, and
// replaces it in the body.
func (c *collective) read(f ir.Formal, p ir.Param) {
	t, lines := f.Buffer.Tensor, int64(0)
	number := expr.Expr(t.At(expr.I(0)))
	copied := ir.Flat(t.Name, t.DType, t.Shape[0])
	replaced := func(x expr.Expr) expr.Expr {
		l, ok := x.(*expr.Load)
		if operands := operandsOf(x); len(operands) == 1 {
			l, ok = operands[0].(*expr.Load)
		}
		if !ok || l.Tensor != t {
			return x
		}
		thread, row, _ := f.Place(l.Index[0])
		_, last, _ := thread.Plus(row, 1).Bounds()
		lines, number, copied.DType = last+1, x, x.DType()
		return &expr.Load{Tensor: copied, Index: l.Index}
	}
	c.body = ir.Rewrite(c.body, func(e expr.Expr) expr.Expr { return mapped(e, replaced) })
	c.elements[copied] = func(index expr.Expr) string {
		thread, row, place := f.Place(index)
		return fmt.Sprintf("%s[%s][%s]", t.Name, c.scalars.Text(thread.Plus(row, 1).Expr()), c.scalars.Text(place.Expr()))
	}
	scalar, from := cprint.TypeOf(t.DType).Scalar, ""
	switch {
	case c.Starts != nil:
		from = fmt.Sprintf("%s element; memcpy(&element, &(uint32_t){sim_term(block, &p->%s, l, k)}, sizeof element);", scalar, p.Name)
	case p.In == ir.Shared:
		from = fmt.Sprintf("%s element = ((const %[1]s *)sim_read_row(first + l, w, l, %d))[k];", scalar, p.Bytes)
	default:
		from = fmt.Sprintf("%s element = ((const %[1]s *)w->lane[l].%s)[k];", scalar, p.Name)
	}
	c.elements[t] = func(expr.Expr) string { return "element" }
	fmt.Fprintf(&c.out, "  %s %s[%d][%d];\n  for (int l = 0; l < %[3]d; l++)\n    for (int k = 0; k < %[4]d; k++) {\n      %[5]s\n      %[2]s[l][k] = %[6]s;\n    }\n",
		cprint.TypeOf(copied.DType).Scalar, t.Name, lines, t.Shape[0], from, c.scalars.Text(number))
}

// mapped replaces the largest parts of an expression that replaced changes.
func mapped(e expr.Expr, replaced func(expr.Expr) expr.Expr) expr.Expr {
	if r := replaced(e); r != e {
		return r
	}
	return expr.Map(e, func(x expr.Expr) expr.Expr { return mapped(x, replaced) })
}

// operandsOf returns the operands of a conversion.
func operandsOf(e expr.Expr) []expr.Expr {
	switch n := e.(type) {
	case *expr.Cast:
		return []expr.Expr{n.A}
	case *ir.Apply:
		return n.Values
	}
	return nil
}

func (c *collective) block(b ir.Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			fmt.Fprintf(&c.out, "  for (int %[1]s = 0; %[1]s < %[2]d; %[1]s++)\n", n.Var.Name, n.Extent)
			c.block(n.Body)
		case *ir.Store:
			fmt.Fprintf(&c.out, "    %s = %s;\n", c.elements[n.Buffer.Tensor](n.Index), c.scalars.Text(n.Value))
		}
	}
}
