package codegen

import (
	"fmt"
	"github.com/tilth-dev/tilth/compiler/cprint"

	"github.com/tilth-dev/tilth/compiler/array"
)

// turnsHelper declares the function that interleaves four vectors: their first elements, then their second ones, and
// so on. For 16 bytes, one instruction permutes those of a
// single vector. The empty assembly keeps compilers from choosing the two-vector permutation, which takes several
// times as long on some processors.
func (u *Unit) turnsHelper(d array.DType, width int64, picks []int64) string {
	name := fmt.Sprintf("tilth_turns_%v_x%d", d, width)
	if u.declarations.Has(name) {
		return name
	}
	one, two, four := u.vector(d, width), u.vector(d, 2*width), u.vector(d, 4*width)
	body := fmt.Sprintf("  const %[1]s front = __builtin_shufflevector(a, b, %[2]s), back = __builtin_shufflevector(c, d, %[2]s);\n", two, cprint.List(upTo(2*width)))
	plain := fmt.Sprintf("  return __builtin_shufflevector(front, back, %s);\n", cprint.List(picks))
	if d.Bytes() == 1 && width == 16 {
		plain = fmt.Sprintf(`#if defined(__clang__) && defined(__AVX512VBMI__)
  typedef char bytes __attribute__((vector_size(64)));
  bytes all = (bytes)__builtin_shufflevector(front, back, %s);
  __asm__("" : "+v"(all));
  return (%s)__builtin_ia32_permvarqi512(all, (bytes){%s});
#else
%s#endif
`, cprint.List(upTo(4*width)), four, cprint.List(picks), plain)
	}
	u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%[3]s a, %[3]s b, %[3]s c, %[3]s d) {\n%[4]s}\n", four, name, one, body+plain))
	return name
}

// upTo returns the numbers from zero to n-1.
func upTo(n int64) []int64 {
	list := make([]int64, n)
	for k := range list {
		list[k] = int64(k)
	}
	return list
}
