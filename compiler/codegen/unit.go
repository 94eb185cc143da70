// Package codegen prints lowered kernels as C with vector types and named accumulators, the form that compilers turn into
// code at the machine's peak. The contract of the printed functions is abi/tilth_kernel.h.
package codegen

import (
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/codegen/abi"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/loop"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Unit is one C translation unit in the making.
type Unit struct {
	vectorBytes int64
	declared    map[string]bool
	prelude     strings.Builder
	code        strings.Builder
}

// Info is what a caller must know of a printed kernel.
type Info struct {
	// Prepared are the packed constants, in the order of the kernel's prepared buffers.
	Prepared []loop.Pack
	// WorkspaceBytes is scratch shared by all workers, WorkerBytes that of each.
	WorkspaceBytes, WorkerBytes int64
}

// NewUnit is an empty translation unit for a target.
func NewUnit(t *target.Target) *Unit {
	return newUnit(int64(t.VectorBytes))
}

func newUnit(vectorBytes int64) *Unit {
	u := &Unit{vectorBytes: vectorBytes, declared: map[string]bool{}}
	u.prelude.WriteString(abi.Header)
	u.prelude.WriteString(commonPrelude)
	return u
}

func (u *Unit) lanes(d array.DType) int64 {
	return max(1, u.vectorBytes/d.Bytes())
}

// Add prints a kernel and, as `const struct tilth_kernel symbol`, its description. The id is what the description calls it.
// The error says why the schedule cannot be lowered.
func (u *Unit) Add(symbol, id string, s *schedule.Schedule) (Info, error) {
	info, fields, err := u.kernel(symbol, id, s)
	if err != nil {
		return Info{}, err
	}
	fmt.Fprintf(&u.code, "__attribute__((visibility(\"hidden\"))) const struct tilth_kernel %s = %s;\n", symbol, fields)
	return info, nil
}

// kernel prints a kernel's functions and returns the initialiser of its description.
func (u *Unit) kernel(symbol, id string, s *schedule.Schedule) (Info, string, error) {
	f, err := loop.Lower(s)
	if err != nil {
		return Info{}, "", err
	}
	if u.vectorBytes > 0 { // the reference stays as plain as it can be
		f.Body = loop.Partition(f.Body)
	}
	if f.Body, err = loop.Expand(f.Body, u.lanes); err != nil {
		return Info{}, "", err
	}
	k := &kernelPrinter{unit: u, symbol: symbol, f: f, shared: map[*expr.Tensor]int64{}}
	run := k.run()
	fmt.Fprintf(&u.code, "enum { %s_shared_bytes = %d, %s_worker_bytes = %d };\n", symbol, k.sharedBytes, symbol, k.workerBytes)
	u.code.WriteString(run)
	if err := u.prepare(symbol, f); err != nil {
		return Info{}, "", err
	}
	prepare, sizes := "0", "0"
	if len(f.Prepared) > 0 {
		prepare, sizes = symbol+"_prepare", symbol+"_prepared_bytes"
	}
	info := Info{Prepared: f.Prepared, WorkspaceBytes: k.sharedBytes, WorkerBytes: k.workerBytes}
	fields := fmt.Sprintf("{\"%s\", %d, %s, %s, %s_run, %d, %d, %s}", id, len(f.Prepared), sizes, prepare, symbol, k.sharedBytes, k.workerBytes,
		floatLiteral(s.ErrorGrowth(), array.Float64))
	return info, fields, nil
}

// prepare prints the function that packs the kernel's constants.
func (u *Unit) prepare(symbol string, f *loop.Func) error {
	if len(f.Prepared) == 0 {
		return nil
	}
	var sizes []string
	var calls strings.Builder
	for i, pack := range f.Prepared {
		sizes = append(sizes, fmt.Sprint(pack.Buffer.Bytes()))
		s, err := pack.Schedule()
		if err != nil {
			return err
		}
		lowered, err := loop.Lower(s)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_pack%d", symbol, i)
		k := &kernelPrinter{unit: u, symbol: name, f: lowered, shared: map[*expr.Tensor]int64{}}
		k.attributes = "__attribute__((cold, noinline)) " // runs once: not worth the compiler's time
		u.code.WriteString(k.run())
		arg := len(f.Workload.Inputs) + pack.Constant
		fmt.Fprintf(&calls, "  { void *const bound[] = {args[%d], prepared[%d]}; %s_run(0, bound, 0, 0); }\n", arg, i, name)
	}
	fmt.Fprintf(&u.code, "static const int64_t %s_prepared_bytes[] = {%s};\n", symbol, strings.Join(sizes, ", "))
	fmt.Fprintf(&u.code, "static void %s_prepare(void *const *args, void *const *prepared) {\n%s}\n", symbol, calls.String())
	return nil
}

// Source is the whole translation unit.
func (u *Unit) Source() string {
	return u.prelude.String() + u.code.String()
}

// Kernel is one candidate of a module.
type Kernel struct {
	// ID is the trace's digest.
	ID       string
	Schedule *schedule.Schedule
}

// Module is a translation unit with one kernel per candidate and the table tilth_module. Every schedule must be of w.
func Module(w *expr.Workload, kernels []Kernel, t *target.Target) (string, error) {
	return moduleOf(w, kernels, NewUnit(t))
}

// moduleOf prints kernels that take the arguments of w.
func moduleOf(w *expr.Workload, kernels []Kernel, u *Unit) (string, error) {
	var table []string
	for i, k := range kernels {
		_, fields, err := u.kernel(fmt.Sprintf("k%d", i), k.ID, k.Schedule)
		if err != nil {
			return "", fmt.Errorf("candidate %.12s: %w", k.ID, err)
		}
		table = append(table, fields)
	}
	u.moduleTable(w, table)
	return u.Source(), nil
}

func (u *Unit) moduleTable(w *expr.Workload, kernels []string) {
	roles := map[expr.Role]string{expr.Input: "TILTH_INPUT", expr.Constant: "TILTH_CONSTANT", expr.Computed: "TILTH_OUTPUT"}
	var args []string
	for i, t := range w.Args() {
		n := t.SpanElements()
		args = append(args, fmt.Sprintf("{\"t%d\", %d, %d, %s, %s}", i, n, n*t.DType.Bytes(), abiName(t.DType), roles[t.Role]))
	}
	fmt.Fprintf(&u.code, "static const struct tilth_arg module_args[] = {%s};\n", strings.Join(args, ", "))
	fmt.Fprintf(&u.code, "static const struct tilth_kernel module_kernels[] = {%s};\n", strings.Join(kernels, ",\n  "))
	fmt.Fprintf(&u.code, "const struct tilth_module tilth_module = {TILTH_ABI, %d, module_args, %d, module_kernels, %s};\n",
		len(args), len(kernels), floatLiteral(Tolerance(w), array.Float64))
}

// Tolerance is the largest difference from the reference that a candidate of w may have, relative to the output's largest
// value. Rounding errors of a sum grow with the square root of its length, so the bound does too. A schedule with another
// algorithm than the direct sum may differ by Schedule.ErrorGrowth times as much.
func Tolerance(w *expr.Workload) float64 {
	terms, unit := 1.0, 0.0
	for _, t := range w.Stages {
		n := 1.0
		for _, r := range t.Reduce {
			n *= float64(r.Extent)
		}
		terms = max(terms, n)
		unit = max(unit, roundoff(t.DType))
	}
	return unit * (64 + 4*math.Sqrt(terms))
}

// roundoff is the relative rounding error of one operation.
func roundoff(d array.DType) float64 {
	switch d {
	case array.Float32:
		return 0x1p-24
	case array.Float64:
		return 0x1p-53
	case array.Float16:
		return 0x1p-11
	case array.BFloat16:
		return 0x1p-8
	default:
		return 0
	}
}
