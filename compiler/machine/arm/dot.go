package arm

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
)

const (
	hasDots   = "defined(__ARM_FEATURE_DOTPROD)"
	hasMatMul = "defined(__ARM_FEATURE_MATMUL_INT8)"
	hasSVE    = "defined(__ARM_FEATURE_SVE)"
)

// HasBF16 is the condition of the preprocessor for instructions on bfloat16.
const HasBF16 = "defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)"

// Dots returns the instructions that add the products of neighbouring elements of two types to sums of 32 bits, and
// neither round integers nor saturate. If a has few bits, it may have any sign. The code adds products of a and b to
// acc.
func Dots(a, b array.DType, few bool) []ir.Alternative {
	switch {
	case a == array.Uint8 && b == array.Int8 && !few:
		return dots("usdot", "b", hasMatMul, hasMatMul)
	case a == array.Uint8 && b == array.Int8, a == array.Int8 && b == array.Int8 && !few:
		return dots("sdot", "b", hasDots, hasSVE)
	case a == array.Uint8 && b == array.Uint8 && !few:
		return dots("udot", "b", hasDots, hasSVE)
	case a == array.BFloat16 && b == array.BFloat16:
		return dots("bfdot", "h", HasBF16, HasBF16)
	}
	return nil
}

// dots returns the instructions that add products of elements (b or h in assembler syntax): for Neon registers
// where the macro neon is defined, and for SVE registers of a length known to the compiler where sve is defined.
func dots(name, element, neon, sve string) []ir.Alternative {
	elements := map[string]string{"b": "16b", "h": "8h"}[element]
	list := []ir.Alternative{{Lanes: 4, If: neon, Code: fmt.Sprintf("  __asm__(\"%[1]s %%0.4s, %%1.%[2]s, %%2.%[2]s\" : \"+w\"(acc) : \"w\"(a), \"w\"(b));\n  return acc;\n", name, elements)}}
	for lanes := int64(8); lanes <= 32; lanes *= 2 {
		condition := fmt.Sprintf("%s && __ARM_FEATURE_SVE_BITS == %d", sve, 32*lanes)
		list = append(list, ir.Alternative{Lanes: lanes, If: condition, Code: sveDot(fmt.Sprintf("%[1]s %%0.s, %%1.%[2]s, %%2.%[2]s", name, element), lanes)})
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

// Square is an instruction that adds the products of two rows by two columns to the four sums of a square. Its first
// operand holds the rows; sums of a row are adjacent.
type Square struct {
	// Terms is the number of terms per row and column.
	Terms int64
	// Name is the instruction, Macro is defined where it is available, and Elements their name in assembler syntax.
	Name, Macro, Elements string
}

// Squares returns the instruction for operands of two types; its Terms are 0 if no instruction supports them. They
// neither round integers nor saturate. Those of bfloat16 add two pairs in sequence. Most cores only have the older
// rules for this, as for bfdot: the sum of a pair is rounded to odd before it is added and rounded again, and
// denormal numbers are flushed to zero.
func Squares(a, b array.DType) Square {
	switch {
	case a == array.Int8 && b == array.Int8:
		return Square{8, "smmla", "__ARM_FEATURE_MATMUL_INT8", "16b"}
	case a == array.Uint8 && b == array.Uint8:
		return Square{8, "ummla", "__ARM_FEATURE_MATMUL_INT8", "16b"}
	case a == array.Uint8 && b == array.Int8:
		return Square{8, "usmmla", "__ARM_FEATURE_MATMUL_INT8", "16b"}
	case a == array.BFloat16 && b == array.BFloat16:
		return Square{4, "bfmmla", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC", "8h"}
	}
	return Square{}
}
