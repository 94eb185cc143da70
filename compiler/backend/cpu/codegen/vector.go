package codegen

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// vector returns a C expression of p.lanes lanes for e. Each part of e must have a vector form.
func (p *printer) vector(e expr.Expr) string {
	switch n := e.(type) {
	case *ir.Lanes:
		return p.lanewise(n)
	case *ir.Spread:
		return p.spread(n)
	case *ir.Picked:
		return p.picked(n)
	case *ir.Folded:
		return p.folded(n)
	}
	if !expr.Uses(e, p.lane) {
		return p.broadcast(e)
	}
	return p.vectorForm(e)
}

// vectorForm returns the vector form of an expression that differs between lanes.
func (p *printer) vectorForm(e expr.Expr) string {
	switch n := e.(type) {
	case *ir.Lookup:
		return fmt.Sprintf("%s(%s, %s)", p.unit.lookupHelper(n.Table.DType, n.At.DType(), p.lanes), p.unit.table(n.Table), p.vector(n.At))
	case *expr.Load:
		return p.vectorLoad(n)
	case *expr.Select:
		return p.vectorSelect(n)
	}
	if e.DType() == array.Bool {
		return fmt.Sprintf("((%s)%s & 1)", p.unit.vector(array.Bool, p.lanes), p.maskOf(e, array.Bool))
	}
	if code, ok := p.fromFourBits(e); ok {
		return code
	}
	switch n := e.(type) {
	case *expr.Binary:
		return p.vectorBinary(n)
	case *expr.Unary:
		return p.vectorUnary(n)
	case *expr.Cast:
		if code, ok := p.quantised(n); ok {
			return code
		}
		if isClamped(n.A) && n.Type.IsInt() {
			code := p.vector(n.A) // in bounds, or NaN
			code = fmt.Sprintf("%s(%s)", p.unit.helper("within_"+n.A.DType().String(), array.Int32, p.lanes), code)
			return p.unit.cast(code, array.Int32, n.Type, p.lanes)
		}
		if rounds(n) {
			return p.unit.round(p.vector(n.A), p.lanes)
		}
		return p.unit.cast(p.vector(n.A), n.A.DType(), n.Type, p.lanes)
	}
	panic(fmt.Sprintf("codegen: %T has no vector form", e))
}

// vectorSelect branches if the condition is the same for all lanes, so that only one side is computed.
func (p *printer) vectorSelect(n *expr.Select) string {
	d := n.DType()
	if expr.Uses(n.Cond, p.lane) {
		cond := p.maskOf(n.Cond, d)
		return fmt.Sprintf("%s(%s, %s, %s)", p.unit.helper("select", d, p.lanes), cond, p.vector(n.A), p.vector(n.B))
	}
	cond, t := p.scalar(n.Cond), p.unit.vector(d, p.lanes)
	release := p.guard()
	// gcc rejects operands of different alignment, so both are cast.
	code := fmt.Sprintf("(%s ? (%s)%s : (%s)%s)", cond, t, p.vector(n.A), t, p.vector(n.B))
	release()
	return code
}

func (p *printer) broadcast(e expr.Expr) string {
	t := p.unit.vector(e.DType(), p.lanes)
	if n, ok := e.(*expr.Float); ok && n.Value == 0 && !math.Signbit(n.Value) {
		return "(" + t + "){0}"
	}
	return fmt.Sprintf("%s_splat(%s)", t, p.scalar(e))
}

// lanewise computes each lane as a scalar and gathers the lanes.
func (p *printer) lanewise(n *ir.Lanes) string {
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = nil, 1
	defer func() { p.lane, p.lanes = lane, lanes }()
	parts := make([]string, len(n.Values))
	for k, x := range n.Values {
		parts[k] = p.scalar(x)
	}
	return fmt.Sprintf("(%s){%s}", p.unit.vector(n.DType(), lanes), strings.Join(parts, ", "))
}

func (p *printer) vectorLoad(n *expr.Load) string {
	at := expr.Linearize(n.Index[0]).Plus(expr.Linearize(p.lane), -1)
	if reg := p.registers[n.Tensor]; reg != nil {
		return reg.vector(at.Const, p.lanes)
	}
	t := p.unit.vector(n.Tensor.DType, p.lanes)
	return fmt.Sprintf("*(const %s_mem *)&%s", t, p.element(n.Tensor, at))
}

// picked picks lanes from vectors that are loaded whole, held in registers, or broadcast.
func (p *printer) picked(n *ir.Picked) string {
	if n.Repeats() {
		return p.repeated(n)
	}
	vectors := p.sources(&n.Sources)
	if n.Turns() {
		return fmt.Sprintf("%s(%s)", p.unit.turnsHelper(n.DType(), n.Width, n.Picks), strings.Join(vectors, ", "))
	}
	return p.among(n, vectors, 0, n.Width)
}

// repeated picks lanes from vectors of one repeated element or word.
func (p *printer) repeated(n *ir.Picked) string {
	vectors := make([]string, len(n.From))
	if n.Width == 1 {
		for k, l := range n.From {
			vectors[k] = p.broadcast(l)
		}
		return p.among(n, vectors, 0, p.lanes)
	}
	lanes := p.lanes / n.Width
	words := &ir.Picked{Sources: ir.Sources{Width: 1}}
	for k := int64(0); k < p.lanes; k += n.Width {
		words.Picks = append(words.Picks, n.Picks[k]/n.Width)
	}
	for k, l := range n.From {
		element := p.element(l.Tensor, expr.Linearize(l.Index[0]))
		vectors[k] = fmt.Sprintf("%s_splat(*(const tilth_word *)&%s)", p.unit.vector(array.Int32, lanes), element)
	}
	return fmt.Sprintf("(%s)%s", p.unit.vector(n.DType(), p.lanes), p.among(words, vectors, 0, lanes))
}

// sources returns the source vectors of lanes, each loaded whole or in a register.
func (p *printer) sources(s *ir.Sources) (vectors []string) {
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = &expr.Var{Name: "k", Extent: s.Width}, s.Width
	for k, from := range s.From {
		code := p.vectorLoad(s.Source(k, p.lane))
		if p.registers[from.Tensor] == nil { // shuffles take no operands of types with an alignment
			code = fmt.Sprintf("(%s)%s", p.unit.vector(from.Tensor.DType, p.lanes), code)
		}
		vectors = append(vectors, code)
	}
	p.lane, p.lanes = lane, lanes
	return vectors
}

// folded adds adjacent lanes: two vectors are reduced to one repeatedly, and finally one vector to half of one.
func (p *printer) folded(n *ir.Folded) string {
	vectors, width := p.sources(&n.Sources), n.Width
	for factor := n.Factor; factor > 1; factor /= 2 {
		if len(vectors) == 1 {
			width /= 2
			vectors[0] = fmt.Sprintf("%s(%s)", p.unit.helper("pairs", n.DType(), width), vectors[0])
			continue
		}
		fold := p.unit.helper("fold", n.DType(), width)
		for k := range len(vectors) / 2 {
			vectors[k] = fmt.Sprintf("%s(%s, %s)", fold, vectors[2*k], vectors[2*k+1])
		}
		vectors = vectors[:len(vectors)/2]
	}
	return vectors[0]
}

// among picks the lanes that come from a pair of adjacent vectors, starting at first.
func (p *printer) among(n *ir.Picked, vectors []string, first int64, width int64) string {
	last := min(int64(len(vectors))-1, first+1)
	picks := make([]int64, len(n.Picks))
	for k, pick := range n.Picks {
		switch vector, at := pick/n.Width-first, pick%n.Width; {
		case vector < 0 || vector > 1: // another pair supplies it
			picks[k] = -1
		case n.Width == 1:
			picks[k] = vector*width + int64(k)
		default:
			picks[k] = vector*width + at
		}
	}
	code := fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", vectors[first], vectors[last], cprint.List(picks))
	if first+2 >= int64(len(vectors)) {
		return code
	}
	both := make([]int64, len(n.Picks))
	for k, pick := range n.Picks {
		if both[k] = int64(k); pick/n.Width > first+1 {
			both[k] += int64(len(n.Picks))
		}
	}
	return fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", code, p.among(n, vectors, first+2, width), cprint.List(both))
}

// spread broadcasts adjacent elements: 32 bits as one number, other sizes as a vector.
func (p *printer) spread(n *ir.Spread) string {
	d := n.DType()
	element := p.element(n.Tensor, expr.Linearize(n.First))
	part := p.kernel.fresh("t")
	if !n.Word() {
		t := p.unit.vector(d, n.Elements)
		p.line("const %[1]s %[2]s = *(const %[1]s_mem *)&%[3]s;", t, part, element)
		again := strings.Repeat(", "+cprint.Indices(0, n.Elements), int(p.lanes/n.Elements))
		return fmt.Sprintf("__builtin_shufflevector(%s, %s%s)", part, part, again)
	}
	p.line("const int32_t %s = *(const tilth_word *)&%s;", part, element)
	words := p.unit.vector(array.Int32, p.lanes*d.Bytes()/array.Int32.Bytes())
	return fmt.Sprintf("(%s)%s_splat(%s)", p.unit.vector(d, p.lanes), words, part)
}

func (p *printer) vectorBinary(n *expr.Binary) string {
	d := n.A.DType()
	if cprint.IsHalf(d) {
		return p.vectorForm(cprint.InFloat32(n))
	}
	if code, ok := p.byLogistic(n); ok {
		return code
	}
	switch n.Op {
	case expr.Pow:
		return fmt.Sprintf("%s(%s, %s)", p.unit.helper("pow", d, p.lanes), p.vector(n.A), p.vector(n.B))
	case expr.Min, expr.Max:
		return p.vectorExtreme(n)
	}
	if code, ok := p.multiplyAdd(n); ok {
		return code
	}
	return fmt.Sprintf("(%s %s %s)", p.vector(n.A), cprint.Infix[n.Op], p.vector(n.B))
}

// multiplyAdd prints a sum or difference that does not round a product.
func (p *printer) multiplyAdd(n *expr.Binary) (code string, ok bool) {
	product, ok := n.Product()
	if !ok {
		return "", false
	}
	if _, divides := p.byLogistic(product); divides {
		return "", false
	}
	return cprint.MultiplyAdd(p.unit.helper("fma", n.DType(), p.lanes), n.Op, p.vector(product.A), p.vector(product.B), p.vector(n.A)), true
}

// vectorExtreme returns Min or Max. An operand that cannot be NaN, such as the zero of a ReLU, goes first: it is
// cheaper.
func (p *printer) vectorExtreme(n *expr.Binary) string {
	a, b := n.A, n.B
	if isNumber(b) {
		a, b = b, a
	}
	helper := p.unit.extremeHelper(n.Op, a.DType(), p.lanes)
	if isNumber(a) {
		helper = p.unit.helper(n.Op.String(), a.DType(), p.lanes)
	}
	return fmt.Sprintf("%s(%s, %s)", helper, p.vector(a), p.vector(b))
}

func isNumber(e expr.Expr) bool {
	f, ok := e.(*expr.Float)
	return ok && f.Value == f.Value
}

func (p *printer) vectorUnary(n *expr.Unary) string {
	d := n.A.DType()
	switch {
	case cprint.IsHalf(d):
		return p.vectorForm(cprint.InFloat32(n))
	case n.Op == expr.Neg:
		return fmt.Sprintf("(-%s)", p.vector(n.A))
	case n.Op == expr.Not:
		return fmt.Sprintf("(~%s)", p.vector(n.A))
	case n.Op == expr.Rsqrt:
		return fmt.Sprintf("(%s / %s(%s))", p.broadcast(expr.F(d, 1)), p.unit.helper("sqrt", d, p.lanes), p.vector(n.A))
	}
	name := n.Op.String()
	if n.Op == expr.Exp && d == array.Float32 && p.endsTile(n.A) {
		name = "exp_all"
	}
	return fmt.Sprintf("%s(%s)", p.unit.helper(name, d, p.lanes), p.vector(n.A))
}

// endsTile reports whether e reads a tile of accumulators.
func (p *printer) endsTile(e expr.Expr) bool {
	return slices.ContainsFunc(expr.Loads(e), func(l *expr.Load) bool {
		reg := p.registers[l.Tensor]
		return reg != nil && reg.IsTile()
	})
}

// endStreams makes a function's non-temporal stores visible before it proceeds, for example before it signals
// completion. On x86 only these stores may be reordered with others.
func (p *printer) endStreams(streams bool) {
	if streams {
		p.line("tilth_end_streams();")
	}
}

// streaming declares a vector's non-temporal store once, and returns its name. Compilers without one store as usual.
func (u *Unit) streaming(d array.DType, lanes int64) string {
	t := u.vector(d, lanes)
	name := "tilth_stream_" + t
	if u.declarations.Has(name) {
		return name
	}
	u.declarations.Declare("tilth_stream", streamPrelude)
	u.declarations.Declare(name, fmt.Sprintf(`#ifdef TILTH_STREAMS
#define %[1]s(p, ...) __builtin_nontemporal_store((%[2]s)(__VA_ARGS__), (%[2]s *)(p))
#else
#define %[1]s(p, ...) (*(%[2]s_mem *)(p) = (__VA_ARGS__))
#endif
`, name, t))
	return name
}

const streamPrelude = `#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define TILTH_STREAMS
#endif
#endif
#if defined(TILTH_STREAMS) && defined(__x86_64__)
#define tilth_end_streams() __builtin_ia32_sfence()
#else
#define tilth_end_streams() ((void)0)
#endif
`
