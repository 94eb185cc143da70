package vta

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/vta.c
var simulatorText string

//go:embed src/vta.h
var headerText string

// distance is the distance between rows of weights, the only immediate value of products.
var distance = &expr.Var{Name: "distance"}

// steps prints the operations of the simulator: a function and a description for each instruction that computes.
type steps struct {
	code, declared strings.Builder
	declarations   cprint.Declarations
}

// Sources returns the simulator's sources and headers.
func simulator() (sources, headers []toolchain.File) {
	s := &steps{}
	for _, d := range []array.DType{array.Int8, array.Uint8} {
		s.add(product(d, distance), nil)
	}
	for _, v := range vectors {
		s.add(v.instruction(nil), v.immediates)
	}
	operations := "#include \"vta_instructions.h\"\n" + s.declarations.Text() + s.code.String()
	sources = []toolchain.File{{Name: "vta.c", Text: simulatorText}, {Name: "vta_instructions.c", Text: operations}}
	return sources, []toolchain.File{{Name: "vta.h", Text: headerText}, {Name: "vta_machine.h", Text: header()},
		{Name: "vta_instructions.h", Text: "#include \"vta.h\"\n" + s.declared.String()}}
}

// add prints the meaning of an instruction as a function of its operands.
func (s *steps) add(i *ir.Instruction, immediates []*expr.Tensor) {
	names := map[*expr.Tensor]string{}
	fmt.Fprintf(&s.code, "static void step_%s(void *const *operands, const double *immediates) {\n", i.Name)
	var accesses []string
	var written string
	for k, f := range i.Meaning.Operands {
		t := f.Buffer.Tensor
		names[t] = i.Params[k].Name
		fmt.Fprintf(&s.code, "  %s *const %s = operands[%d];\n", cprint.TypeOf(t.DType).Scalar, names[t], k)
		if use := i.Params[k].Use; use != ir.Read { // a row is read before it is overwritten, maybe by wider elements
			names[t], written = "row", names[t]
			fmt.Fprintf(&s.code, "  %s row[%d];\n", cprint.TypeOf(t.DType).Scalar, block)
			if use == ir.Update {
				fmt.Fprintf(&s.code, "  __builtin_memcpy(row, %s, sizeof row);\n", written)
			}
		}
		accesses = append(accesses, fmt.Sprintf("{%d, %d}", block*t.DType.Bytes(), t.Shape[0]/block))
	}
	for k, t := range immediates {
		names[t] = fmt.Sprintf("x%d", k)
		fmt.Fprintf(&s.code, "  const %[1]s x%[2]d[1] = {(%[1]s)immediates[%[2]d]};\n", cprint.TypeOf(t.DType).Scalar, k)
	}
	if len(immediates) == 0 {
		s.code.WriteString("  const int64_t distance = (int64_t)immediates[0];\n")
	}
	p := &cprint.Scalars{Helpers: cprint.Helpers{Declarations: &s.declarations, Dialect: cprint.C}, Var: func(v *expr.Var) string { return v.Name }}
	p.Load = func(l *expr.Load) string { return fmt.Sprintf("%s[%s]", names[l.Tensor], p.Text(l.Index[0])) }
	s.block(i.Meaning.Body, p, names, "  ")
	if written != "" {
		fmt.Fprintf(&s.code, "  __builtin_memcpy(%s, row, sizeof row);\n", written)
	}
	fmt.Fprintf(&s.code, "}\nconst struct vta_operation vta_%[1]s = {\"%[1]s\", step_%[1]s, %[2]d, {%[3]s}};\n", i.Name, len(accesses), strings.Join(accesses, ", "))
	fmt.Fprintf(&s.declared, "extern const struct vta_operation vta_%s;\n", i.Name)
}

func (s *steps) block(b ir.Block, p *cprint.Scalars, names map[*expr.Tensor]string, indent string) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			if n.Kind == ir.Vector {
				fmt.Fprintf(&s.code, "%s_Pragma(\"clang loop vectorize(enable) interleave(disable)\")\n", indent)
			}
			fmt.Fprintf(&s.code, "%sfor (int64_t %[2]s = 0; %[2]s < %[3]d; %[2]s++)\n", indent, n.Var.Name, n.Extent)
			s.block(n.Body, p, names, indent+"  ")
		case *ir.Store:
			fmt.Fprintf(&s.code, "%s%s[%s] = %s;\n", indent, names[n.Buffer.Tensor], p.Text(n.Index), p.Text(n.Value))
		}
	}
}
