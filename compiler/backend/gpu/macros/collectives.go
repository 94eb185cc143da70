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

// collectives returns the simulator's functions for the instructions of a warp, which compute their meanings.
func collectives() string {
	var b strings.Builder
	for _, turned := range []bool{false, true} {
		for _, count := range []int64{1, 2, 4} {
			b.WriteString(collective(nvidia.LoadMatrices(count, turned), []string{"result", "a"}))
		}
	}
	for _, f := range []schedule.Format{schedule.TF32, schedule.BF16, schedule.F16} {
		b.WriteString(collective(nvidia.Multiply(f, array.Invalid, array.Invalid), []string{"result", "a", "b"}))
	}
	for _, x := range []array.DType{array.Int8, array.Uint8} {
		for _, y := range []array.DType{array.Int8, array.Uint8} {
			b.WriteString(collective(nvidia.Multiply(schedule.I8, x, y), []string{"result", "a", "b"}))
		}
	}
	return b.String()
}

// collective returns the function sim_NAME for an instruction, given the fields of struct sim_lane that hold its
// operands. Operands in shared memory are checked as the parameters say.
func collective(i *ir.Instruction, fields []string) string {
	name, _, _ := strings.Cut(i.Text, "(")
	p := &collectivePrinter{Instruction: i}
	p.scalars = cprint.Scalars{Var: func(v *expr.Var) string { return v.Name }, Load: func(l *expr.Load) string { return p.element(l.Tensor, l.Index[0]) },
		Other: func(e expr.Expr) string {
			a := e.(*ir.Apply)
			return fmt.Sprintf(a.Text, p.scalars.Text(a.Values[0]))
		}}
	p.scalars.Helpers = cprint.Helpers{Declarations: &cprint.Declarations{}, Dialect: Text}
	fmt.Fprintf(&p.out, "SIM_STATIC void sim_%s(struct sim_thread *first, struct sim_warp *w) {\n", strings.ToLower(name))
	for k, f := range i.Meaning.Operands {
		scalar, name, value := cprint.TypeOf(f.Buffer.Tensor.DType).Scalar, f.Buffer.Tensor.Name, "w->lane[l]."+fields[k]
		if i.Params[k].In == ir.Shared {
			value = fmt.Sprintf("sim_read_row(first + l, w, l, %d)", i.Params[k].Bytes)
		}
		declared := fmt.Sprintf("  %s *%s[SIM_WARP];\n", scalar, name)
		each := fmt.Sprintf("%s[l] = %s", name, value)
		if i.Params[k].Use == ir.Read {
			declared = fmt.Sprintf("  %s %s[SIM_WARP][%d];\n", scalar, name, f.Buffer.Elements())
			each = fmt.Sprintf("memcpy(%[1]s[l], %[2]s, sizeof %[1]s[l])", name, value)
		}
		fmt.Fprintf(&p.out, "%s  for (int l = 0; l < %d; l++) %s;\n", declared, p.threads(f), each)
	}
	p.block(i.Meaning.Body)
	return strings.NewReplacer("tilth_from_bf16_f32x1", "sim_bf16", "tilth_fma_f32x1", "sim_multiply_add").Replace(p.out.String()) + "}\n"
}

type collectivePrinter struct {
	*ir.Instruction
	scalars cprint.Scalars
	out     strings.Builder
}

// threads returns the number of threads whose elements of an operand are accessed.
func (p *collectivePrinter) threads(f ir.Formal) (threads int64) {
	use := func(t *expr.Tensor, index expr.Expr) {
		if t == f.Buffer.Tensor {
			thread, _, _ := f.Place(index)
			_, last, _ := thread.Bounds()
			threads = last + 1
		}
	}
	ir.Visit(p.Meaning.Body, func(st ir.Stmt) {
		if s, ok := st.(*ir.Store); ok {
			use(s.Buffer.Tensor, s.Index)
			for _, l := range expr.Loads(s.Value) {
				use(l.Tensor, l.Index[0])
			}
		}
	})
	return threads
}

// element returns an element of an operand.
func (p *collectivePrinter) element(t *expr.Tensor, index expr.Expr) string {
	for _, f := range p.Meaning.Operands {
		if f.Buffer.Tensor != t {
			continue
		}
		thread, row, place := f.Place(index)
		at := p.scalars.Text(thread.Expr())
		if f.Row != nil {
			return fmt.Sprintf("%s[%s][%s * w->lane[%s].argument + %s]", t.Name, at, p.scalars.Text(row.Expr()), at, p.scalars.Text(place.Expr()))
		}
		return fmt.Sprintf("%s[%s][%s]", t.Name, at, p.scalars.Text(place.Expr()))
	}
	panic("macros: " + t.Name + " is no operand of " + p.Name)
}

func (p *collectivePrinter) block(b ir.Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			fmt.Fprintf(&p.out, "  for (int %[1]s = 0; %[1]s < %[2]d; %[1]s++)\n", n.Var.Name, n.Extent)
			p.block(n.Body)
		case *ir.Store:
			fmt.Fprintf(&p.out, "    %s = %s;\n", p.element(n.Buffer.Tensor, n.Index), p.scalars.Text(n.Value))
		}
	}
}
