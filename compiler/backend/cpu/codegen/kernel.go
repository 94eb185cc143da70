package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// kernelPrinter prints one kernel: the entry point and a function per parallel loop body.
type kernelPrinter struct {
	unit   *Unit
	symbol string
	f      *ir.Func
	// bodies holds the functions of parallel loops, which precede the entry point.
	bodies  []string
	counter int
	// attributes precedes the entry point.
	attributes string
}

func (k *kernelPrinter) fresh(prefix string) string {
	k.counter++
	return fmt.Sprintf("%s%d", prefix, k.counter)
}

func (k *kernelPrinter) printer() *printer {
	p := &printer{
		unit: k.unit, kernel: k, indent: 1, names: map[*expr.Var]string{}, lanes: 1,
		registers: map[*expr.Tensor]*register{}, memory: map[*expr.Tensor]string{},
		arrays: map[*expr.Tensor]bool{}, pointers: map[string]pointer{}, depths: map[*expr.Var]int{},
	}
	p.scalars = &cprint.Scalars{Helpers: *k.unit.helpers(), Var: p.varName, Load: p.scalarLoad, Other: p.other, Guard: p.guard}
	return p
}

// run prints the entry point and the functions that it needs.
func (k *kernelPrinter) run() string {
	p := k.printer()
	k.pointers(p)
	p.block(k.f.Body)
	p.endStreams(k.f.Streams)
	var b strings.Builder
	for _, body := range k.bodies {
		b.WriteString(body)
	}
	fmt.Fprintf(&b, "%sstatic void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n", k.attributes, k.symbol)
	b.WriteString("  char *const shared = workspace;\n")
	b.WriteString(p.out.String())
	b.WriteString("}\n")
	return b.String()
}

// pointers declares the arguments and packed constants. The ABI aligns them, but the code does not say so: unaligned
// vector loads are as fast, and the annotation costs compile time.
func (k *kernelPrinter) pointers(p *printer) {
	inputs := len(k.f.Args) - len(k.f.Workload.Outputs)
	declare := func(b *ir.Buffer, constant, array, name string) {
		p.memory[b.Tensor] = name
		p.line("%s%s *restrict const %s = %s[%d];", constant, cprint.TypeOf(b.Tensor.DType).Scalar, name, array, b.Index)
	}
	for i, b := range k.f.Args {
		switch {
		case b == nil:
		case i < inputs:
			declare(b, "const ", "args", fmt.Sprintf("a%d", i))
		default:
			declare(b, "", "args", fmt.Sprintf("a%d", i))
		}
	}
	for i, pack := range k.f.Prepared {
		declare(pack.Buffer, "const ", "prepared", fmt.Sprintf("p%d", i))
	}
}

// parallel prints a parallel loop. Its body becomes a function that runs a range of iterations. A closure passes the
// values and shared buffers that the body uses.
func (p *printer) parallel(n *ir.For) {
	k := p.kernel
	body := k.printer()
	name := fmt.Sprintf("%s_body%d", k.symbol, len(k.bodies))
	k.pointers(body)
	for i, v := range n.Captured {
		body.names[v] = p.varName(v)
		body.line("const int64_t %s = closure->values[%d];", body.names[v], i)
	}
	byName := func(a, b *ir.Buffer) int { return strings.Compare(p.memory[a.Tensor], p.memory[b.Tensor]) }
	for _, b := range slices.SortedFunc(slices.Values(n.Shared), byName) {
		c, name := cprint.TypeOf(b.Tensor.DType).Scalar, p.memory[b.Tensor]
		body.memory[b.Tensor] = name
		body.line("%s *const %s = (%s *)(shared + %d);", c, name, c, b.OffsetBytes)
	}
	v := body.varName(n.Var)
	body.line("for (int64_t %s = begin; %s < end; %s++) {", v, v, v)
	body.nested(n.Body)
	body.line("}")
	body.endStreams(n.Streams)
	k.bodies = append(k.bodies, k.bodyFunction(name, len(n.Captured), body.out.String()))
	iterations := fmt.Sprint(n.Extent)
	if n.Range != nil {
		iterations = p.scalar(n.Range.End)
	}
	p.call(name, n.Captured, iterations)
}

func (k *kernelPrinter) bodyFunction(name string, values int, code string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "struct %s_closure { void *const *args; void *const *prepared; char *workspace; char *workers; int64_t worker_bytes; int64_t values[%d]; };\n", name, max(values, 1))
	fmt.Fprintf(&b, "static void %s(void *environment, int64_t begin, int64_t end, int32_t worker) {\n", name)
	fmt.Fprintf(&b, "  const struct %s_closure *const closure = environment;\n", name)
	b.WriteString("  void *const *const args = closure->args;\n  void *const *const prepared = closure->prepared;\n")
	b.WriteString("  char *const shared = closure->workspace;\n  char *const own = closure->workers + worker * closure->worker_bytes;\n")
	b.WriteString(code)
	b.WriteString("}\n")
	return b.String()
}

func (p *printer) call(name string, captured []*expr.Var, iterations string) {
	values := make([]string, 0, len(captured)+1)
	for _, v := range captured {
		values = append(values, p.varName(v))
	}
	if len(values) == 0 {
		values = append(values, "0")
	}
	s := p.kernel.symbol
	closure := p.kernel.fresh("closure")
	p.line("struct %s_closure %s = {args, prepared, shared, shared + %s_shared_bytes, %s_worker_bytes, {%s}};", name, closure, s, s, strings.Join(values, ", "))
	p.line("rt->parallel(rt, %s, &%s, %s);", name, closure, iterations)
}

// prototype is the C prototype of user-written kernels.
const prototype = "void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace)"

// ownKernel adds a user-written kernel as a separate translation unit, which isolates its macros and functions, and
// prints the function that runs it.
func (u *Unit) ownKernel(symbol string, s *schedule.Schedule) (info backend.Info, err error) {
	c := s.Own
	if u.target == nil {
		return info, fmt.Errorf("%s is for processors, not for plain C", c.Kernel.Label())
	}
	if info.WorkspaceBytes, err = c.On(u.target); err != nil {
		return info, err
	}
	args, inputs := make([]string, len(s.Workload.Args())), len(s.Workload.Inputs)
	for k := range args {
		args[k] = fmt.Sprintf("args[%d]", k)
	}
	for constant, t := range s.Workload.Constants {
		if dims := s.Packs[constant]; dims != nil {
			pack := lower.NewPack(constant, t, nil, dims)
			pack.Buffer.Index = len(info.Prepared)
			args[inputs+constant] = fmt.Sprintf("prepared[%d]", pack.Buffer.Index)
			info.Prepared = append(info.Prepared, pack)
		}
	}
	name := symbol + "_own"
	u.own = append(u.own, toolchain.File{Name: name + ".c", Text: c.Unit(name, cruntime.Header, prototype, u.target.Threads())})
	fmt.Fprintf(&u.code, "extern void %s(const struct tilth_runtime *rt, void *const *args, void *workspace) __attribute__((visibility(\"hidden\")));\n", name)
	fmt.Fprintf(&u.code, "static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n", symbol)
	fmt.Fprintf(&u.code, "  void *const own[] = {%s};\n  %s(rt, own, workspace);\n}\n", strings.Join(args, ", "), name)
	return info, nil
}

// packTable prints the packs of a kernel's prepared buffers as `const struct tilth_pack *const symbol_packs[]` and
// returns its name, or "0" if the kernel has no packs.
func (u *Unit) packTable(symbol string, inputs int, packs []ir.Pack) (string, error) {
	if len(packs) == 0 {
		return "0", nil
	}
	var table []string
	for _, p := range packs {
		name, err := u.pack(inputs+p.Constant, p)
		if err != nil {
			return "", err
		}
		table = append(table, "&"+name)
	}
	fmt.Fprintf(&u.code, "static const struct tilth_pack *const %s_packs[] = {%s};\n", symbol, strings.Join(table, ", "))
	return symbol + "_packs", nil
}

// pack prints the function that fills the packed constant arg, and its description. The unit prints each of them only
// once: the candidates of a batch share a few layouts.
func (u *Unit) pack(arg int, p ir.Pack) (name string, err error) {
	key := fmt.Sprintf("%d %s", arg, p.Workload.Text())
	if name, ok := u.packs[key]; ok {
		return name, nil
	}
	name = fmt.Sprintf("pack%d", len(u.packs))
	s, err := lower.PackSchedule(p)
	if err != nil {
		return "", err
	}
	f, err := plain.Lower(s, &u.config, nil)
	if err != nil {
		return "", err
	}
	const runsOnce = "__attribute__((cold, noinline)) " // not worth optimising
	u.functions(name, f, runsOnce)
	// It has no workspace, but the workers' parts are derived from an address.
	fmt.Fprintf(&u.code, "static void %s_fill(const struct tilth_runtime *rt, void *const *args, void *packed) { void *const bound[] = {args[%d], packed}; %s_run(rt, bound, 0, packed); }\n", name, arg, name)
	fmt.Fprintf(&u.code, "static const struct tilth_pack %s = {%d, %s_fill};\n", name, p.Buffer.Bytes(), name)
	u.packs[key] = name
	return name, nil
}
