package modulefile

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Printed is a candidate before it is linked with the other kernels of its module.
type Printed struct {
	id             string
	workspaceBytes int64
	growth         float64
	helpers        cprint.Declarations
	// kernels holds its launches in order.
	kernels []codegen.Kernel
}

// Print prints a candidate under a symbol that is unique in its module. It returns an error if the schedule cannot be
// lowered, or names the GPU limit that it exceeds.
func Print(symbol string, k backend.Kernel, t *target.Target) (*Printed, error) {
	if k.Schedule.Own != nil {
		return nil, fmt.Errorf("candidate %.12s: %s is not a kernel for this kind of device", k.ID, k.Schedule.Own.Kernel.Label())
	}
	f, err := codegen.Lower(k.Schedule, t.GPU)
	if err != nil {
		return nil, fmt.Errorf("candidate %.12s: %w", k.ID, err)
	}
	if len(f.Prepared) > 0 {
		return nil, fmt.Errorf("candidate %.12s: it packs constants, which kernels for GPUs read as they are", k.ID)
	}
	p := &Printed{id: k.ID, workspaceBytes: f.WorkspaceBytes, growth: k.Schedule.ErrorGrowth()}
	p.kernels = codegen.Kernels(symbol, f, &p.helpers, macros.Text)
	return p, nil
}

// Size returns the length of its kernels in bytes, a proxy for compile time.
func (p *Printed) Size() int {
	n := 0
	for _, k := range p.kernels {
		n += len(k.Text)
	}
	return n
}

// Code returns the build that compiles the text of kernels to a device's code: a build of one source.
type Code func(kernels string, t *target.Target) toolchain.Build

// Module returns the build of candidates, all of w and t: a table of launches followed by the code of the kernels, in
// the format of src/image.h.
func Module(w *expr.Workload, candidates []*Printed, t *target.Target, code Code) toolchain.Build {
	var helpers cprint.Declarations
	text := ""
	for _, p := range candidates {
		helpers.Include(&p.helpers)
		for _, k := range p.kernels {
			text += k.Text
		}
	}
	table := tableOf(w, candidates)
	// Equal texts of other candidates have another table. The digest makes their builds differ.
	b := code(fmt.Sprintf("/* %x */\n", sha256.Sum256([]byte(table)))+helpers.Text()+text, t)
	b.Join = func(made, assembled []byte) []byte {
		return slices.Concat(fmt.Appendf(nil, "%scode %d %d\n", table, len(made), len(assembled)), made, assembled)
	}
	return b
}

// moduleVersion is the prefix of modules.
const moduleVersion = "tilth-device-module 4\n"

// roles maps argument roles to their numbers in the ABI.
var roles = map[expr.Role]int{expr.Input: 0, expr.Constant: 1, expr.Computed: 2}

func tableOf(w *expr.Workload, candidates []*Printed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sargs %d\n", moduleVersion, len(w.Args()))
	allowed := tolerance.ArgTolerances(w)
	for k, t := range w.Args() {
		n := t.SpanElements()
		fmt.Fprintf(&b, "arg t%d %d %d %d %d %g %g\n", k, n, n*t.DType.Bytes(), cruntime.Type(t.DType), roles[t.Role], allowed[k].Sums, allowed[k].Rounding)
	}
	fmt.Fprintf(&b, "kernels %d\n", len(candidates))
	for _, p := range candidates {
		fmt.Fprintf(&b, "kernel %s %d %g %d\n", p.id, p.workspaceBytes, p.growth, len(p.kernels))
		for _, k := range p.kernels {
			fmt.Fprintf(&b, "launch %s %d %d %d %d%s\n", k.Name, k.Blocks, k.Threads, k.SharedBytes, len(k.Parameters()), parameters(k))
		}
	}
	return b.String()
}

// parameters returns the parameters of a launch as a table entry.
func parameters(k codegen.Kernel) string {
	text := ""
	for _, p := range k.Parameters() {
		if p.Map != nil {
			text += boxes(p)
		}
		if p.Arg < 0 {
			text += fmt.Sprintf(" w%d", p.OffsetBytes)
		} else {
			text += fmt.Sprintf(" a%d", p.Arg)
		}
	}
	return text
}

// boxes returns the boxes of a tensor map as a table entry.
func boxes(p codegen.Parameter) string {
	text, size := fmt.Sprintf(" m %d %d %d", cruntime.Type(p.Type), p.Map.PanelBytes, len(p.Map.Dims)), p.Type.Bytes()
	for _, d := range p.Map.Dims {
		text += fmt.Sprintf(" %d %d %d", d.Extent, d.Stride*size, d.Box)
	}
	return text
}
