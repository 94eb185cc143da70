package x86

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
)

const (
	hasVNNI    = "defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__)"
	hasVNNI512 = "defined(__AVX512VNNI__)"
)

// HasBF16 is the condition of the preprocessor for instructions on bfloat16 in vectors of 512 bits, HasBF16VL that for
// shorter ones.
const (
	HasBF16   = "defined(__AVX512BF16__)"
	HasBF16VL = "defined(__AVX512BF16__) && defined(__AVX512VL__)"
)

// Dots returns the instructions that add the products of neighbouring elements of two types to sums of 32 bits, and
// neither round integers nor saturate. pmaddubsw saturates except for elements of few bits, so that it is listed for a
// first factor of at most four. Products of bfloat16 are exact in float32. The code adds products of a and b to acc.
func Dots(a, b array.DType, few bool) (list []ir.Alternative) {
	switch {
	case a == array.Int16 && b == array.Int16:
		return []ir.Alternative{
			{Lanes: 4, If: hasVNNI, Code: dot("vpdpwssd", 4)}, {Lanes: 8, If: hasVNNI, Code: dot("vpdpwssd", 8)},
			{Lanes: 16, If: hasVNNI512, Code: dot("vpdpwssd", 16)}, {Lanes: 4, If: "defined(__SSE2__)", Code: multiplyAdd(128, 4)},
			{Lanes: 8, If: "defined(__AVX2__)", Code: multiplyAdd(256, 8)}, {Lanes: 16, If: "defined(__AVX512BW__)", Code: multiplyAdd(512, 16)},
		}
	case a == array.Uint8 && b == array.Int8:
		list = []ir.Alternative{
			{Lanes: 4, If: hasVNNI, Code: dot("vpdpbusd", 4)}, {Lanes: 8, If: hasVNNI, Code: dot("vpdpbusd", 8)},
			{Lanes: 16, If: hasVNNI512, Code: dot("vpdpbusd", 16)},
		}
		if few {
			list = append(list, ir.Alternative{Lanes: 4, If: "defined(__SSSE3__)", Code: multiplyFew(128, 4)},
				ir.Alternative{Lanes: 8, If: "defined(__AVX2__)", Code: multiplyFew(256, 8)},
				ir.Alternative{Lanes: 16, If: "defined(__clang__) && defined(__AVX512BW__)", Code: multiplyFew(512, 16)})
		}
	case a == array.BFloat16 && b == array.BFloat16:
		list = []ir.Alternative{
			{Lanes: 4, If: HasBF16VL, Code: dotBF16("128", 4)}, {Lanes: 8, If: HasBF16VL, Code: dotBF16("256", 8)},
			{Lanes: 16, If: HasBF16, Code: dotBF16("512", 16)},
		}
	}
	return list
}

// dot returns code that adds products to acc. Compilers name the instruction's intrinsic after the bits or the
// lanes of a vector.
func dot(name string, lanes int64) string {
	return fmt.Sprintf(`  typedef int words __attribute__((vector_size(%[2]d)));
#ifdef __clang__
  return ({acc})__builtin_ia32_%[1]s%[3]d((words)acc, (words)a, (words)b);
#else
  return ({acc})__builtin_ia32_%[1]s_v%[4]dsi((words)acc, (words)a, (words)b);
#endif
`, name, 4*lanes, 32*lanes, lanes)
}

// multiplyAdd returns code that adds products to acc. The empty assembly keeps compilers from reassociating the
// products of an unrolled loop, which would exceed the registers. gcc names the longest of these intrinsics
// differently.
func multiplyAdd(bits, lanes int64) string {
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

// multiplyFew returns code that adds products of bytes. One factor has so few bits that sums of two products do
// not saturate.
func multiplyFew(bits, lanes int64) string {
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

// dotBF16 returns code that adds products of pairs to acc. Compilers differ in the type of the pairs, and gcc in
// the name.
func dotBF16(bits string, lanes int64) string {
	return fmt.Sprintf(`#if defined(__clang__) && __clang_major__ >= 16
  typedef __bf16 pairs __attribute__((vector_size(%[2]d)));
  return ({acc})__builtin_ia32_dpbf16ps_%[1]s(acc, (pairs)a, (pairs)b);
#else
  __asm__("vdpbf16ps %%2, %%1, %%0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
#endif
`, bits, 4*lanes)
}
