package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// Printed is a kernel in C before it is linked with the other kernels of its module.
type Printed struct {
	kernel backend.Kernel
	printed
	unit *Unit
}

// Print prints a kernel under a symbol that is unique in its module. Without a target it prints plain scalar C. It
// returns an error if the schedule cannot be lowered.
func Print(symbol string, k backend.Kernel, t *target.Target) (*Printed, error) {
	return PrintIn(NewUnit(t), symbol, k)
}

// PrintIn prints like Print, into an empty unit.
func PrintIn(u *Unit, symbol string, k backend.Kernel) (*Printed, error) {
	p, err := u.kernel(symbol, k.Schedule)
	if err != nil {
		return nil, fmt.Errorf("candidate %.12s: %w", k.ID, err)
	}
	return &Printed{k, p, u}, nil
}

// Size returns the length of the kernel's functions in bytes, a proxy for compile time. It excludes the functions
// that pack constants.
func (p *Printed) Size() int {
	size := p.unit.code.Len()
	for _, f := range p.unit.own {
		size += len(f.Text)
	}
	return size
}

// Own returns the user-written kernels to compile beside the module.
func (p *Printed) Own() []toolchain.File { return p.unit.own }

// Kernel returns the user-written kernel, or nil if a schedule was printed.
func (p *Printed) Kernel() *userkernel.Kernel {
	if p.kernel.Schedule.Own == nil {
		return nil
	}
	return p.kernel.Schedule.Own.Kernel
}

// Link returns a translation unit of printed kernels with the functions that pack their constants and the table
// tilth_module. All kernels must come from Print with the same w and t. A nil t means plain scalar C.
func Link(w *expr.Workload, kernels []backend.Printed, t *target.Target) (string, error) {
	return LinkIn(NewUnit(t), w, kernels)
}

// LinkIn links like Link, into an empty unit. The kernels must come from PrintIn with similar units.
func LinkIn(u *Unit, w *expr.Workload, kernels []backend.Printed) (string, error) {
	var table []string
	for _, k := range kernels {
		p := k.(*Printed)
		u.declarations.Include(&p.unit.declarations)
		u.code.WriteString(p.unit.code.String())
		packs, err := u.packTable(p.symbol, len(w.Inputs), p.Prepared)
		if err != nil {
			return "", fmt.Errorf("candidate %.12s: %w", p.kernel.ID, err)
		}
		table = append(table, p.fields(p.kernel.ID, packs))
	}
	u.code.WriteString(ModuleTable(w, table))
	return u.Source(), nil
}

// pointsOf returns the points of a count, and zero for other tensors.
func pointsOf(t *expr.Tensor) string {
	if t.Max == 0 {
		return "0"
	}
	points := make([]int64, expr.Points)
	for k := range points {
		points[k] = t.Point(k)
	}
	return cprint.List(points)
}

// ModuleTable returns the C table tilth_module with the initialisers of its kernels.
func ModuleTable(w *expr.Workload, kernels []string) string {
	roles := map[expr.Role]string{expr.Input: "TILTH_INPUT", expr.Constant: "TILTH_CONSTANT", expr.Computed: "TILTH_OUTPUT"}
	var args []string
	allowed := tolerance.ArgTolerances(w)
	for i, t := range w.Args() {
		n, float := t.SpanElements(), func(v float64) string { return cprint.FloatLiteral(v, array.Float64) }
		args = append(args, fmt.Sprintf("{\"t%d\", %d, %d, %s, %s, %s, %s, {%s}}", i, n, n*t.DType.Bytes(), abiName(t.DType), roles[t.Role],
			float(allowed[i].Sums), float(allowed[i].Rounding), pointsOf(t)))
	}
	return fmt.Sprintf("static const struct tilth_arg module_args[] = {%s};\n", strings.Join(args, ", ")) +
		fmt.Sprintf("static const struct tilth_kernel module_kernels[] = {%s};\n", strings.Join(kernels, ",\n  ")) +
		fmt.Sprintf("const struct tilth_module tilth_module = {TILTH_ABI, %d, module_args, %d, module_kernels};\n", len(args), len(kernels))
}
