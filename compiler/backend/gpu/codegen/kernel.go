package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// global is a buffer in global memory that a launch uses.
type global struct {
	*ir.Buffer
	name    string
	written bool
}

// globalsOf are the buffers in global memory that a launch uses, among all of its kernel's, in their order.
func globalsOf(n *ir.For, all []global) (used []global) {
	for _, g := range all {
		if !ir.Uses(n.Body, g.Tensor) {
			continue
		}
		ir.Visit(n.Body, func(st ir.Stmt) {
			b := ir.Written(st)
			g.written = g.written || b != nil && b.Tensor == g.Tensor
		})
		used = append(used, g)
	}
	return used
}

// globals are the buffers in global memory of a program, in the order of its parameters, and where the function of the
// ABI has them.
func globals(f *ir.Func) (all []global, places map[string]string) {
	places = map[string]string{}
	add := func(b *ir.Buffer, name, place string) {
		all = append(all, global{Buffer: b, name: name})
		places[name] = place
	}
	for k, b := range f.Args {
		if b != nil {
			add(b, fmt.Sprintf("a%d", k), fmt.Sprintf("args[%d]", b.Index))
		}
	}
	for k, p := range f.Prepared {
		add(p.Buffer, fmt.Sprintf("p%d", k), fmt.Sprintf("prepared[%d]", p.Buffer.Index))
	}
	for k, st := range f.Body {
		if a, ok := st.(*ir.Alloc); ok {
			add(a.Buffer, fmt.Sprintf("w%d", k), fmt.Sprintf("(void *)(shared + %d)", a.Buffer.OffsetBytes))
		}
	}
	return all, places
}

// Kernel is a launch in print.
type Kernel struct {
	Name string
	// Text is a function in the words of package dialect.
	Text string
	// Blocks is the size of the grid, Threads that of each block.
	Blocks, Threads int64
	// globals are its parameters.
	globals []global
}

// Kernels prints the launches of a program, in their order, with the helper functions that they call.
func Kernels(symbol string, f *ir.Func, helpers *ctext.Declarations, d ctext.Dialect) []Kernel {
	all, _ := globals(f)
	var list []Kernel
	for k, l := range launchesOf(f) {
		n := Kernel{Name: fmt.Sprintf("%s_%d", symbol, k), Blocks: l.loop.Extent, Threads: l.threads, globals: globalsOf(l.loop, all)}
		n.Text = kernel(n.Name, l, n.globals, helpers, d)
		list = append(list, n)
	}
	return list
}

// kernel prints a launch as a function.
func kernel(name string, l launch, globals []global, u *ctext.Declarations, d ctext.Dialect) string {
	p := &printer{name: name, launch: l, names: map[*expr.Var]string{}, buffers: map[*expr.Tensor]string{}, private: map[*expr.Tensor]bool{}}
	p.scalars = &ctext.Scalars{Helpers: ctext.Helpers{Declarations: u, Dialect: d}, Var: p.variable, Load: p.load}
	params := make([]string, len(globals))
	arrays := ""
	for k, g := range globals {
		p.buffers[g.Tensor] = g.name
		constant := "const "
		if g.written {
			constant = ""
		}
		params[k] = fmt.Sprintf("GLOBAL %s%s *restrict %s", constant, ctext.TypeOf(g.Tensor.DType).Scalar, g.name)
		arrays += fmt.Sprintf("  GLOBAL_ARRAY(%s, %d);\n", g.name, g.Elements())
	}
	p.indent++
	p.line("const %s %s = BID;", d.Index, p.variable(l.loop.Var))
	p.indent--
	p.block(l.loop.Body)
	return fmt.Sprintf("TILTH_KERNEL(%s, %d)(%s) {\n%s%s%s}\n", name, l.threads, strings.Join(params, ", "), arrays, p.shared.String(), p.out.String())
}
