package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// dotStep is a vectorized step of a sum of products, acc[lane] += a[lane,k] * b[lane,k] for all k of a dotted loop at
// once.
type dotStep struct {
	lane  *ir.For
	store *ir.Store
	a, b  dotOperand
}

// dotOperand is where the elements of one operand lie: those of a lane side by side, and either those of the next lane
// behind them or the same for all lanes.
type dotOperand struct {
	tensor *expr.Tensor
	first  expr.Linear
	shared bool
}

// dot prints a dotted loop: as one instruction what has the form of a dotStep, the rest as a loop. The steps of a sum
// may be taken apart, since each adds to elements of its own; other statements stay together.
func (p *printer) dot(n *ir.For) {
	if slices.ContainsFunc(n.Body, func(st ir.Stmt) bool { return !p.isStep(st) }) {
		p.serial(n)
		return
	}
	for _, st := range n.Body {
		if step, ok := p.dotStep(n, st); ok {
			p.dotProduct(step, n.Extent)
			continue
		}
		p.serial(&ir.For{Var: n.Var, Extent: n.Extent, Body: ir.Block{st}})
	}
}

// isStep reports whether a statement is a step of a sum, for one element or for those of a vector.
func (p *printer) isStep(st ir.Stmt) bool {
	if lane, ok := st.(*ir.For); ok && lane.Kind == ir.Vector && len(lane.Body) == 1 {
		st = lane.Body[0]
	}
	store, ok := st.(*ir.Store)
	if !ok {
		return false
	}
	sum, ok := store.Value.(*expr.Binary)
	return ok && sum.Op == expr.Add && isStepOf(sum, store) && store.Buffer.Tensor.DType.IsInt()
}

func (p *printer) dotStep(n *ir.For, st ir.Stmt) (dotStep, bool) {
	lane, ok := st.(*ir.For)
	if !ok || lane.Kind != ir.Vector || len(lane.Body) != 1 {
		return dotStep{}, false
	}
	store, ok := lane.Body[0].(*ir.Store)
	if !ok || store.Buffer.Tensor.DType != array.Int32 || expr.Uses(store.Index, n.Var) {
		return dotStep{}, false
	}
	if coef, linear := expr.Linearize(store.Index).Coef(lane.Var); !linear || coef != 1 {
		return dotStep{}, false
	}
	sum, ok := store.Value.(*expr.Binary)
	if !ok || sum.Op != expr.Add || !isStepOf(sum, store) {
		return dotStep{}, false
	}
	product, ok := sum.B.(*expr.Binary)
	if !ok || product.Op != expr.Mul {
		return dotStep{}, false
	}
	a, okA := p.dotOperand(product.A, lane.Var, n)
	b, okB := p.dotOperand(product.B, lane.Var, n)
	if !okA || !okB {
		return dotStep{}, false
	}
	if _, ok := dotInstructions[dotTypes{b.tensor.DType, a.tensor.DType}]; ok {
		a, b = b, a
	}
	form, ok := dotInstructions[dotTypes{a.tensor.DType, b.tensor.DType}]
	return dotStep{lane, store, a, b}, ok && form.terms == n.Extent
}

func (p *printer) dotOperand(e expr.Expr, lane *expr.Var, n *ir.For) (dotOperand, bool) {
	cast, ok := e.(*expr.Cast)
	if !ok || cast.Type != array.Int32 {
		return dotOperand{}, false
	}
	l, ok := cast.A.(*expr.Load)
	if !ok || p.registers[l.Tensor] != nil {
		return dotOperand{}, false
	}
	at := expr.Linearize(l.Index[0])
	across, linearLane := at.Coef(lane)
	along, linear := at.Coef(n.Var)
	if !linear || !linearLane || along != 1 || across != 0 && across != n.Extent {
		return dotOperand{}, false
	}
	first := at.Plus(expr.Linearize(lane), -across).Plus(expr.Linearize(n.Var), -1)
	return dotOperand{l.Tensor, first, across == 0}, true
}

func (p *printer) dotProduct(d dotStep, terms int64) {
	p.lane, p.lanes = d.lane.Var, d.lane.Extent
	defer func() { p.lane, p.lanes = nil, 1 }()
	a, b := p.dotElements(d.a, terms), p.dotElements(d.b, terms)
	acc := p.vector(d.store.Value.(*expr.Binary).A)
	name := p.unit.dotHelper(dotTypes{d.a.tensor.DType, d.b.tensor.DType}, p.lanes)
	p.storeVector(d.store, fmt.Sprintf("%s(%s, %s, %s)", name, acc, a, b))
}

// dotElements is a vector of the terms of all lanes. The terms of a lane are 32 bits, which are loaded as one number
// to be spread.
func (p *printer) dotElements(o dotOperand, terms int64) string {
	d := o.tensor.DType
	t := p.unit.vector(d, p.lanes*terms)
	address := "&" + p.element(o.tensor, o.first)
	if o.shared {
		word := p.temp("int32_t", fmt.Sprintf("*(const tilth_word *)%s", address), o.tensor)
		words := p.unit.vector(array.Int32, p.lanes)
		return p.temp(t, fmt.Sprintf("(%s)%s_splat(%s)", t, words, word), o.tensor)
	}
	code := fmt.Sprintf("*(const %s_mem *)%s", t, address)
	if p.isNew(code) {
		p.prefetch(o.tensor, o.first)
	}
	return p.temp(t, code, o.tensor)
}

type dotTypes struct{ a, b array.DType }

// dotForm is how operands of two types are multiplied: so many terms a lane, by these instructions.
type dotForm struct {
	terms int64
	by    []dotInstruction
}

// dotInstruction is what a compiler makes an instruction for vectors of some lanes of, where the macros say that the
// machine has it.
type dotInstruction struct {
	lanes     int64
	condition string
	body      string
}

const (
	hasVNNI    = "defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__)"
	hasVNNI512 = "defined(__AVX512VNNI__)"
)

// dotInstructions are those that neither round nor saturate, as x86's pmaddubsw would.
var dotInstructions = map[dotTypes]dotForm{
	{array.Int16, array.Int16}: {2, []dotInstruction{
		{4, hasVNNI, x86Dot("vpdpwssd128", 4)}, {8, hasVNNI, x86Dot("vpdpwssd256", 8)}, {16, hasVNNI512, x86Dot("vpdpwssd512", 16)},
		{4, "defined(__SSE2__)", x86MultiplyAdd(128, 4)}, {8, "defined(__AVX2__)", x86MultiplyAdd(256, 8)}, {16, "defined(__AVX512BW__)", x86MultiplyAdd(512, 16)},
	}},
	{array.Uint8, array.Int8}: {4, []dotInstruction{
		{4, hasVNNI, x86Dot("vpdpbusd128", 4)}, {8, hasVNNI, x86Dot("vpdpbusd256", 8)}, {16, hasVNNI512, x86Dot("vpdpbusd512", 16)},
		{4, "defined(__ARM_FEATURE_MATMUL_INT8)", armDot("usdot")},
	}},
	{array.Int8, array.Int8}:   {4, []dotInstruction{{4, "defined(__ARM_FEATURE_DOTPROD)", armDot("sdot")}}},
	{array.Uint8, array.Uint8}: {4, []dotInstruction{{4, "defined(__ARM_FEATURE_DOTPROD)", armDot("udot")}}},
}

func x86Dot(name string, lanes int64) string {
	words := fmt.Sprintf("int __attribute__((vector_size(%d)))", 4*lanes)
	return fmt.Sprintf("  typedef %s words;\n  return ({acc})__builtin_ia32_%s((words)acc, (words)a, (words)b);\n", words, name)
}

// x86MultiplyAdd adds products to acc. The empty assembly keeps compilers from adding up the products of an unrolled
// loop in another order, for which the registers do not suffice.
func x86MultiplyAdd(bits, lanes int64) string {
	halves := fmt.Sprintf("short __attribute__((vector_size(%d)))", 4*lanes)
	return fmt.Sprintf(`  typedef %s halves;
  acc = ({acc})(({bits})acc + ({bits})__builtin_ia32_pmaddwd%d((halves)a, (halves)b));
  __asm__("" : "+v"(acc));
  return acc;
`, halves, bits)
}

func armDot(name string) string {
	return fmt.Sprintf("  __asm__(\"%s %%0.4s, %%1.16b, %%2.16b\" : \"+w\"(acc) : \"w\"(a), \"w\"(b));\n  return acc;\n", name)
}

// dotHelper declares the function of a dot product that is added to acc, whatever the machine has for it.
func (u *Unit) dotHelper(d dotTypes, lanes int64) string {
	name := fmt.Sprintf("tilth_dot_%v_%v_x%d", d.a, d.b, lanes)
	if u.declarations.has(name) {
		return name
	}
	form := dotInstructions[d]
	t, bits := u.vector(array.Int32, lanes), u.vector(array.Uint32, lanes)
	a, b := u.vector(d.a, lanes*form.terms), u.vector(d.b, lanes*form.terms)
	var body strings.Builder
	branch := "#if"
	for _, i := range form.by {
		if i.lanes == lanes {
			fmt.Fprintf(&body, "%s %s\n%s", branch, i.condition, i.body)
			branch = "#elif"
		}
	}
	plain := plainDot(form.terms, lanes)
	if branch == "#if" {
		body.WriteString(plain)
	} else {
		body.WriteString("#else\n" + plain + "#endif\n")
	}
	text := strings.NewReplacer("{acc}", t, "{bits}", bits).Replace(body.String())
	u.declarations.declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%s acc, %s a, %s b) {\n%s}\n", t, name, t, a, b, text))
	return name
}

// plainDot says what the instructions do: each term of all lanes is taken out, multiplied and added.
func plainDot(terms, lanes int64) string {
	text := "  {bits} sum = ({bits})acc;\n"
	for k := range terms {
		picked := strings.Trim(strings.Repeat("%d, ", int(lanes)), ", ")
		at := make([]any, lanes)
		for i := range at {
			at[i] = int64(i)*terms + k
		}
		picked = fmt.Sprintf(picked, at...)
		wide := func(x string) string {
			return fmt.Sprintf("({bits})__builtin_convertvector(__builtin_shufflevector(%s, %s, %s), {acc})", x, x, picked)
		}
		text += fmt.Sprintf("  sum += %s * %s;\n", wide("a"), wide("b"))
	}
	return text + "  return ({acc})sum;\n"
}
