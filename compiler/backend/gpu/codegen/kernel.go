package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// global is a buffer in global memory that a launch uses.
type global struct {
	*ir.Buffer
	name    string
	written bool
	// aligned is set if the compiler knows that it is aligned to 16 bytes.
	aligned bool
	place   Parameter
}

// Parameter is a pointer or a tensor map that a launch passes to its kernel.
type Parameter struct {
	// Arg is the number of a workload argument, or -1 for the workspace at OffsetBytes. If Prepared is set, Arg is
	// the number of a packed constant.
	Arg         int
	Prepared    bool
	OffsetBytes int64
	// Map is set if the parameter is a tensor map instead of a pointer.
	Map *ir.TensorMap
	// Type is the element type of such a tensor.
	Type array.DType
}

// expression returns the parameter in the ABI function.
func (p Parameter) expression() string {
	switch {
	case p.Prepared:
		return fmt.Sprintf("prepared[%d]", p.Arg)
	case p.Arg >= 0:
		return fmt.Sprintf("args[%d]", p.Arg)
	}
	return fmt.Sprintf("(void *)(shared + %d)", p.OffsetBytes)
}

// globalsOf returns the global buffers of the kernel that a launch uses, in order.
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

// globals returns the buffers in global memory of a program, in the order of its parameters.
func globals(f *ir.Func) (all []global) {
	args := f.Workload.Args()
	for k, b := range f.Args {
		if b != nil {
			// A buffer with strides is a part of another tensor and may have any alignment.
			all = append(all, global{Buffer: b, name: fmt.Sprintf("a%d", k), aligned: args[k].Strides == nil, place: Parameter{Arg: b.Index}})
		}
	}
	for k, p := range f.Prepared {
		all = append(all, global{Buffer: p.Buffer, name: fmt.Sprintf("p%d", k), place: Parameter{Arg: p.Buffer.Index, Prepared: true}})
	}
	for k, st := range f.Body {
		if a, ok := st.(*ir.Alloc); ok {
			all = append(all, global{Buffer: a.Buffer, name: fmt.Sprintf("w%d", k), aligned: true, place: Parameter{Arg: -1, OffsetBytes: a.Buffer.OffsetBytes}})
		}
	}
	return all
}

// Kernel is a printed launch.
type Kernel struct {
	Name string
	// Text is a function in the macros of package macros.
	Text string
	// Blocks is the size of the grid, Threads that of each block.
	Blocks, Threads int64
	// SharedBytes is the dynamic shared memory of a block, without what the kernel declares statically.
	SharedBytes int64
	// globals holds its pointer parameters, maps the tensor maps after them.
	globals []global
	maps    []tensorMap
}

// Parameters returns the parameters of the kernel in order: pointers, then tensor maps.
func (k Kernel) Parameters() []Parameter {
	list := make([]Parameter, 0, len(k.globals)+len(k.maps))
	for _, g := range k.globals {
		list = append(list, g.place)
	}
	for _, m := range k.maps {
		place := m.of.place
		place.Map, place.Type = m.TensorMap, m.of.Tensor.DType
		list = append(list, place)
	}
	return list
}

// Kernels prints the launches of a program in order, with the helper functions that they call.
func Kernels(symbol string, f *ir.Func, helpers *cprint.Declarations, d cprint.Dialect) []Kernel {
	all := globals(f)
	var list []Kernel
	for k, l := range launchesOf(f) {
		n := Kernel{Name: fmt.Sprintf("%s_%d", symbol, k), Blocks: l.loop.Extent, Threads: l.threads, SharedBytes: l.dynamicBytes(), globals: globalsOf(l.loop, all)}
		n.maps = mapsOf(l.loop, n.globals)
		n.Text = kernel(n, l, helpers, d)
		list = append(list, n)
	}
	return list
}

// kernel prints a launch as a function.
func kernel(n Kernel, l launch, u *cprint.Declarations, d cprint.Dialect) string {
	p := &printer{launch: l, names: map[*expr.Var]string{}, buffers: map[*expr.Tensor]string{}, private: map[*expr.Tensor]bool{},
		maps: n.maps, aligned: map[*expr.Tensor]bool{}}
	p.scalars = &cprint.Scalars{Helpers: cprint.Helpers{Declarations: u, Dialect: d}, Var: p.variable, Load: p.load, Other: p.other}
	params := make([]string, 0, len(n.globals)+len(n.maps))
	arrays := ""
	for _, g := range n.globals {
		p.buffers[g.Tensor] = g.name
		constant := "const "
		if g.written {
			constant = ""
		}
		param := fmt.Sprintf("GLOBAL %s%s *restrict %s", constant, cprint.TypeOf(g.Tensor.DType).Scalar, g.name)
		arrays += fmt.Sprintf("  GLOBAL_ARRAY(%s, %d);\n", g.name, g.Elements())
		if g.aligned {
			p.aligned[g.Tensor] = true
			param += " ALIGNED_PARAMETER"
			arrays += fmt.Sprintf("  GLOBAL_ALIGNED(%s);\n", g.name)
		}
		params = append(params, param)
	}
	for _, m := range n.maps {
		arrays += fmt.Sprintf("  TENSOR_MAP_OF(%s, %s, %s, %d);\n", m.name, m.of.name, n.Name, len(params))
		params = append(params, "TENSOR_MAP "+m.name)
	}
	p.indent++
	p.line("const %s %s = BID;", d.Index, p.variable(l.loop.Var))
	p.indent--
	p.block(l.loop.Body)
	return fmt.Sprintf("TILTH_KERNEL(%s, %d)(%s) {\n%s%s%s}\n", n.Name, l.threads, strings.Join(params, ", "), arrays, p.shared.String(), p.out.String())
}
