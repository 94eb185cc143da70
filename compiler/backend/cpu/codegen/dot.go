package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// dotProduct prints a step of sums of products.
func (p *printer) dotProduct(n *ir.DotProduct) {
	p.lane, p.lanes = n.Lane, n.Lane.Extent
	defer func() { p.lane, p.lanes = nil, 1 }()
	acc := p.vector(n.Before)
	a, b := p.registers[n.A.Tensor], p.registers[n.B.Tensor]
	name := p.unit.dotHelper(pass.DotTypes{A: n.A.Tensor.DType, B: n.B.Tensor.DType, Few: n.Few}, n.Terms, p.lanes)
	p.storeVector(&ir.Store{Buffer: n.Buffer, Index: n.Index}, fmt.Sprintf("%s(%s, %s, %s)", name, acc, a.name, b.name))
}

// hasDot reports whether an instruction multiplies that many terms of two types, on its own or in 2x2 squares.
func hasDot(t pass.DotTypes, terms int64) bool {
	return dotInstructions[t].terms == terms || squareInstructions[squareTypes{t.A, t.B}].terms == terms
}

// dotForm describes how operands of two types are multiplied: the terms per lane and the available instructions.
type dotForm struct {
	terms int64
	by    []dotInstruction
}

// dotInstruction is an instruction for vectors of some number of lanes, guarded by the macros that announce it.
type dotInstruction struct {
	lanes     int64
	condition string
	body      string
}

const (
	hasVNNI    = "defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__)"
	hasVNNI512 = "defined(__AVX512VNNI__)"
	hasBF16    = "defined(__AVX512BF16__)"
	hasBF16VL  = "defined(__AVX512BF16__) && defined(__AVX512VL__)"
	hasDotProd = "defined(__ARM_FEATURE_DOTPROD)"
	hasMatMul  = "defined(__ARM_FEATURE_MATMUL_INT8)"
	hasSVE     = "defined(__ARM_FEATURE_SVE)"
)

// dotInstructions lists the instructions that neither round integers nor saturate. x86's pmaddubsw saturates except
// for elements of few bits. Products of bfloat16 are exact in float32.
var dotInstructions = map[pass.DotTypes]dotForm{
	{A: array.Int16, B: array.Int16}: {2, []dotInstruction{
		{4, hasVNNI, x86Dot("vpdpwssd", 4)}, {8, hasVNNI, x86Dot("vpdpwssd", 8)}, {16, hasVNNI512, x86Dot("vpdpwssd", 16)},
		{4, "defined(__SSE2__)", x86MultiplyAdd(128, 4)}, {8, "defined(__AVX2__)", x86MultiplyAdd(256, 8)}, {16, "defined(__AVX512BW__)", x86MultiplyAdd(512, 16)},
	}},
	{A: array.Uint8, B: array.Int8}: {4, slices.Concat([]dotInstruction{
		{4, hasVNNI, x86Dot("vpdpbusd", 4)}, {8, hasVNNI, x86Dot("vpdpbusd", 8)}, {16, hasVNNI512, x86Dot("vpdpbusd", 16)},
	}, armDots("usdot", "b", hasMatMul, hasMatMul))},
	{A: array.Uint8, B: array.Int8, Few: true}: {4, slices.Concat([]dotInstruction{
		{4, hasVNNI, x86Dot("vpdpbusd", 4)}, {8, hasVNNI, x86Dot("vpdpbusd", 8)}, {16, hasVNNI512, x86Dot("vpdpbusd", 16)},
		{4, "defined(__SSSE3__)", x86MultiplyFew(128, 4)}, {8, "defined(__AVX2__)", x86MultiplyFew(256, 8)},
		{16, "defined(__clang__) && defined(__AVX512BW__)", x86MultiplyFew(512, 16)},
	}, armDots("sdot", "b", hasDotProd, hasSVE))},
	{A: array.Int8, B: array.Int8}:   {4, armDots("sdot", "b", hasDotProd, hasSVE)},
	{A: array.Uint8, B: array.Uint8}: {4, armDots("udot", "b", hasDotProd, hasSVE)},
	{A: array.BFloat16, B: array.BFloat16}: {2, slices.Concat([]dotInstruction{
		{4, hasBF16VL, x86DotBF16("128", 4)}, {8, hasBF16VL, x86DotBF16("256", 8)}, {16, hasBF16, x86DotBF16("512", 16)},
	}, armDots("bfdot", "h", hasArmRounding, hasArmRounding))},
}

// x86Dot returns code that adds products to acc. Compilers name the instruction's intrinsic after the bits or the
// lanes of a vector.
func x86Dot(name string, lanes int64) string {
	return fmt.Sprintf(`  typedef int words __attribute__((vector_size(%[2]d)));
#ifdef __clang__
  return ({acc})__builtin_ia32_%[1]s%[3]d((words)acc, (words)a, (words)b);
#else
  return ({acc})__builtin_ia32_%[1]s_v%[4]dsi((words)acc, (words)a, (words)b);
#endif
`, name, 4*lanes, 32*lanes, lanes)
}

// x86MultiplyAdd returns code that adds products to acc. The empty assembly keeps compilers from reassociating the
// products of an unrolled loop, which would exceed the registers. gcc names the longest of these intrinsics
// differently.
func x86MultiplyAdd(bits, lanes int64) string {
	halves := fmt.Sprintf("short __attribute__((vector_size(%d)))", 4*lanes)
	code := fmt.Sprintf(`  typedef %s halves;
  acc = ({acc})(({bits})acc + ({bits})__builtin_ia32_pmaddwd%d((halves)a, (halves)b));
`, halves, bits)
	if bits == 512 {
		code = fmt.Sprintf(`  typedef %s halves;
#ifdef __clang__
  {bits} products = ({bits})__builtin_ia32_pmaddwd512((halves)a, (halves)b);
#else
  {bits} products = ({bits})__builtin_ia32_pmaddwd512_mask((halves)a, (halves)b, ({acc}){0}, (unsigned short)-1);
#endif
  acc = ({acc})(({bits})acc + products);
`, halves)
	}
	return code + `  __asm__("" : "+v"(acc));
  return acc;
`
}

// x86MultiplyFew returns code that adds products of bytes. One factor has so few bits that sums of two products do
// not saturate.
func x86MultiplyFew(bits, lanes int64) string {
	bytes := fmt.Sprintf("char __attribute__((vector_size(%d)))", 4*lanes)
	halves := fmt.Sprintf("short __attribute__((vector_size(%d)))", 4*lanes)
	return fmt.Sprintf(`  typedef %[1]s bytes;
  typedef %[2]s halves;
  const halves pairs = (halves)__builtin_ia32_pmaddubsw%[3]d((bytes)a, (bytes)b);
  acc = ({acc})(({bits})acc + ({bits})__builtin_ia32_pmaddwd%[3]d(pairs, (halves){0} + 1));
  __asm__("" : "+v"(acc));
  return acc;
`, bytes, halves, bits)
}

// x86DotBF16 returns code that adds products of pairs to acc. Compilers differ in the type of the pairs, and gcc in
// the name.
func x86DotBF16(bits string, lanes int64) string {
	return fmt.Sprintf(`#if defined(__clang__) && __clang_major__ >= 16
  typedef __bf16 pairs __attribute__((vector_size(%[2]d)));
  return ({acc})__builtin_ia32_dpbf16ps_%[1]s(acc, (pairs)a, (pairs)b);
#else
  __asm__("vdpbf16ps %%2, %%1, %%0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
#endif
`, bits, 4*lanes)
}

// armDots returns the instructions that add products of elements (b or h in assembler syntax): for Neon registers
// where the macro neon is defined, and for SVE registers of a length known to the compiler where sve is defined.
func armDots(name, element, neon, sve string) []dotInstruction {
	elements := map[string]string{"b": "16b", "h": "8h"}[element]
	list := []dotInstruction{{4, neon, fmt.Sprintf("  __asm__(\"%[1]s %%0.4s, %%1.%[2]s, %%2.%[2]s\" : \"+w\"(acc) : \"w\"(a), \"w\"(b));\n  return acc;\n", name, elements)}}
	for lanes := int64(8); lanes <= 32; lanes *= 2 {
		condition := fmt.Sprintf("%s && __ARM_FEATURE_SVE_BITS == %d", sve, 32*lanes)
		list = append(list, dotInstruction{lanes, condition, sveDot(fmt.Sprintf("%[1]s %%0.s, %%1.%[2]s, %%2.%[2]s", name, element), lanes)})
	}
	return list
}

// sveDot returns the SVE instruction as assembly. Clang requires other types for it than for arithmetic.
func sveDot(text string, lanes int64) string {
	return fmt.Sprintf(`  typedef __SVUint8_t whole __attribute__((arm_sve_vector_bits(%[1]d)));
  typedef uint8_t bytes __attribute__((vector_size(%[2]d)));
  __SVUint8_t sum = (whole)(bytes)acc, left = (whole)(bytes)a, right = (whole)(bytes)b;
  __asm__("%[3]s" : "+w"(sum) : "w"(left), "w"(right));
  return ({acc})(bytes)(whole)sum;
`, 32*lanes, 4*lanes, text)
}

// dotHelper declares the function that adds a dot product to acc, with the best instruction available. Terms of
// squares fall back to plain code if no instruction computes them.
func (u *Unit) dotHelper(d pass.DotTypes, terms, lanes int64) string {
	name := fmt.Sprintf("tilth_dot_%v_%v_x%d", d.A, d.B, lanes)
	if d.Few {
		name += "_few"
	}
	form := dotInstructions[d]
	if form.terms != terms {
		name += fmt.Sprintf("_%dterms", terms)
		form = dotForm{terms: terms}
	}
	if u.declarations.Has(name) {
		return name
	}
	sum := array.Int32
	if d.A.IsFloat() {
		sum = array.Float32
	}
	t, bits := u.vector(sum, lanes), u.vector(array.Uint32, lanes)
	a, b := u.vector(d.A, lanes*form.terms), u.vector(d.B, lanes*form.terms)
	var body strings.Builder
	branch := "#if"
	for _, i := range form.by {
		if i.lanes == lanes {
			fmt.Fprintf(&body, "%s %s\n%s", branch, i.condition, i.body)
			branch = "#elif"
		}
	}
	plain := plainDot(terms, lanes)
	if sum == array.Float32 {
		plain = plainDotBF16(terms, lanes)
	}
	if branch == "#if" {
		body.WriteString(plain)
	} else {
		body.WriteString("#else\n" + plain + "#endif\n")
	}
	text := strings.NewReplacer("{acc}", t, "{bits}", bits).Replace(body.String())
	u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%s acc, %s a, %s b) {\n%s}\n", t, name, t, a, b, text))
	return name
}

// plainDot returns portable code for the instructions: it extracts, multiplies and adds each term of all lanes.
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

// plainDotBF16 does the same for pairs. The second element is the upper half of a word, since bfloat16 is the upper
// half of float32. If a lane has two pairs, the second pair's word is extracted too.
func plainDotBF16(terms, lanes int64) string {
	if terms == 2 {
		return cprint.Contract("ON") + `  {bits} p = ({bits})a, q = ({bits})b;
  return acc + ({acc})(p << 16) * ({acc})(q << 16) + ({acc})(p & 0xffff0000) * ({acc})(q & 0xffff0000);
`
	}
	words := terms / 2
	text := fmt.Sprintf("  typedef unsigned words __attribute__((vector_size(%d)));\n", 4*words*lanes)
	for k := range words {
		at := make([]int64, lanes)
		for i := range at {
			at[i] = int64(i)*words + k
		}
		picked := func(x string) string {
			return fmt.Sprintf("({bits})__builtin_shufflevector((words)%[1]s, (words)%[1]s, %[2]s)", x, listed(at))
		}
		text += plainPair("acc", picked("a"), picked("b"))
	}
	return text + "  return acc;\n"
}

// plainPair returns code that adds the products of bfloat16 pairs, held in words of a and b, to sums.
func plainPair(sums, a, b string) string {
	return fmt.Sprintf("  {\n%[4]s  %[1]s += ({acc})(%[2]s << 16) * ({acc})(%[3]s << 16) + ({acc})(%[2]s & 0xffff0000) * ({acc})(%[3]s & 0xffff0000);\n  }\n",
		sums, a, b, cprint.Contract("ON"))
}
