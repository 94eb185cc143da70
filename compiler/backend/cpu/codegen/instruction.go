package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
)

// instructions maps a number of lanes to an instruction as C, guarded by the macros that announce it.
type instructions map[int64]struct{ condition, code string }

// shortest is the number of lanes of the shortest register vectors, which are not split.
const shortest = 4

// byInstruction returns the body of a function that uses an instruction. If no instruction has that many lanes but
// one has fewer, the body calls the function on halves. Otherwise the body is plain.
func (u *Unit) byInstruction(by instructions, lanes int64, operands []string, plain string, half func() string) string {
	var body strings.Builder
	branch := "#if"
	if one, ok := by[lanes]; ok {
		fmt.Fprintf(&body, "#if %s\n  return %s;\n", one.condition, one.code)
		branch = "#elif"
	}
	if lanes > shortest {
		fmt.Fprintf(&body, "%s %s\n  return %s;\n", branch, by[shortest].condition, halves(half(), lanes, operands))
		branch = "#elif"
	}
	if branch == "#if" {
		return plain
	}
	return body.String() + "#else\n" + plain + "#endif\n"
}

// halves calls a function on each half of the operands.
func halves(name string, lanes int64, operands []string) string {
	half := func(first int64) string {
		parts := make([]string, len(operands))
		for k, x := range operands {
			parts[k] = fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", x, x, cprint.Indices(first, lanes/2))
		}
		return fmt.Sprintf("%s(%s)", name, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", half(0), half(lanes/2), cprint.Indices(0, lanes))
}

// gccFMA is gcc's multiply-add of vectors of some type and number of lanes, where the condition holds.
type gccFMA struct {
	d               array.DType
	lanes           int64
	condition, body string
}

// gccFMAs lists the instructions. gcc fuses operators everywhere or nowhere, and has no builtin for all targets.
var gccFMAs = []gccFMA{
	{array.Float32, 4, "defined(__FMA__)", "return __builtin_ia32_vfmaddps(a, b, c);"},
	{array.Float32, 8, "defined(__FMA__)", "return __builtin_ia32_vfmaddps256(a, b, c);"},
	{array.Float32, 16, "defined(__AVX512F__)", "return __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4);"},
	{array.Float64, 2, "defined(__FMA__)", "return __builtin_ia32_vfmaddpd(a, b, c);"},
	{array.Float64, 4, "defined(__FMA__)", "return __builtin_ia32_vfmaddpd256(a, b, c);"},
	{array.Float64, 8, "defined(__AVX512F__)", "return __builtin_ia32_vfmaddpd512_mask(a, b, c, (unsigned char)-1, 4);"},
	{array.Float32, 2, "defined(__aarch64__)", `__asm__("fmla %0.2s, %1.2s, %2.2s" : "+w"(c) : "w"(a), "w"(b)); return c;`},
	{array.Float32, 4, "defined(__aarch64__)", `__asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b)); return c;`},
	{array.Float64, 2, "defined(__aarch64__)", `__asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b)); return c;`},
	{array.Float32, 2, "defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)", `__asm__("vfma.f32 %P0, %P1, %P2" : "+w"(c) : "w"(a), "w"(b)); return c;`},
	{array.Float32, 4, "defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)", `__asm__("vfma.f32 %q0, %q1, %q2" : "+w"(c) : "w"(a), "w"(b)); return c;`},
}

// vectorMultiplyAdd declares a * b + c with one rounding, where the target has an instruction for it. gcc computes two
// halves of vectors that it has no instruction for.
func (u *Unit) vectorMultiplyAdd(head, name, t string, d array.DType, lanes int64) {
	var gcc strings.Builder
	for _, i := range gccFMAs {
		if i.d == d && i.lanes == lanes {
			fmt.Fprintf(&gcc, "#elif %s\n  %s\n", i.condition, i.body)
		}
	}
	u.declarations.DeclareFMA()
	half, halves := u.helper("fma", d, lanes/2), u.vector(d, lanes/2)
	u.declarations.Declare(name, fmt.Sprintf(`#ifdef TILTH_FMA
#define %[1]s TILTH_FMA
#else
%[2]s%[3]s %[1]s(%[3]s a, %[3]s b, %[3]s c) {
%[4]s#if defined(__clang__) || !defined(__FP_FAST_FMA%[5]s)
  return a * b + c;
%[6]s#else
  union { %[3]s whole; %[7]s half[2]; } x = {a}, y = {b}, z = {c};
  z.half[0] = %[8]s(x.half[0], y.half[0], z.half[0]);
  z.half[1] = %[8]s(x.half[1], y.half[1], z.half[1]);
  return z.whole;
#endif
}
#endif
`, name, head, t, cprint.Contract("ON"), strings.ToUpper(cprint.TypeOf(d).Builtin), gcc.String(), halves, half))
}
