package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// rounds reports whether a cast rounds a computed float32 to bfloat16. The instructions flush denormal numbers to
// zero. That is negligible in a computed result, but not in an element that is only loaded and cast.
func rounds(n *expr.Cast) bool {
	_, loaded := n.A.(*expr.Load)
	return n.Type == array.BFloat16 && n.A.DType() == array.Float32 && !loaded
}

// round returns a C expression that rounds a float32 vector to bfloat16, by an instruction if the machine has one.
func (u *Unit) round(code string, lanes int64) string {
	const from, to = array.Float32, array.BFloat16
	if len(roundings[lanes]) == 0 {
		return u.cast(code, from, to, lanes)
	}
	name := fmt.Sprintf("tilth_round_bf16x%d", lanes)
	if !u.declarations.Has(name) {
		x, y := u.vector(from, lanes), u.vector(to, lanes)
		var body strings.Builder
		branch := "#if"
		for _, r := range roundings[lanes] {
			fmt.Fprintf(&body, "%s %s\n", branch, r.condition)
			branch = "#elif"
			if r.text == "" {
				fmt.Fprintf(&body, "  return %s;\n", u.roundHalves(lanes))
				continue
			}
			fmt.Fprintf(&body, "  %[1]s y;\n  __asm__(\"%[2]s\" : \"=%[3]s\"(y) : \"%[3]s\"(x));\n  return y;\n", y, r.text, r.register)
		}
		fmt.Fprintf(&body, "#else\n  return %s;\n#endif\n", u.cast("x", from, to, lanes))
		u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%s x) {\n%s}\n", y, name, x, body.String()))
	}
	return fmt.Sprintf("%s(%s)", name, code)
}

// roundHalves rounds each half of the vector x separately.
func (u *Unit) roundHalves(lanes int64) string {
	half := func(first int64) string {
		return u.round(fmt.Sprintf("__builtin_shufflevector(x, x, %s)", indices(first, lanes/2)), lanes/2)
	}
	return fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", half(0), half(lanes/2), indices(0, lanes))
}

// rounding is an instruction, as assembly between registers of a class, guarded by macros. An empty text means that
// an instruction exists for half as many lanes.
type rounding struct{ condition, text, register string }

const (
	x86Rounding    = "vcvtneps2bf16 %1, %0"
	hasArmRounding = "defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)"
)

// roundings maps a number of lanes to its instructions. Their result occupies half a register.
var roundings = map[int64][]rounding{
	4:  {{hasArmRounding, "bfcvtn %0.4h, %1.4s", "w"}},
	8:  {{hasBF16VL, x86Rounding, "v"}, {hasArmRounding, "", ""}},
	16: {{hasBF16, x86Rounding, "v"}},
	32: {{hasBF16, "", ""}},
}
