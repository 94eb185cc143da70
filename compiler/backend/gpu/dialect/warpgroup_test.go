package dialect

import (
	"fmt"
	"strings"
	"testing"
)

// productFaults are mistakes around a product of a warpgroup: what is put into productKernel instead of what is right.
// Its lines are counted from 1.
var productFaults = []struct {
	name, instead, put, want string
}{
	{"no fence", "FENCE_ASYNC();", "", "the product of line 9 reads sa[0], and thread 0 wrote it (line 5), with no FENCE_ASYNC and barrier between"},
	{"a fence behind the barrier", "FENCE_ASYNC(); BARRIER();", "BARRIER(); FENCE_ASYNC();", "the product of line 9 reads sa[0], and thread 0 wrote it (line 5), with no FENCE_ASYNC and barrier between"},
	{"no barrier", "FENCE_ASYNC(); BARRIER();", "FENCE_ASYNC();", "race on sa[0]: thread 127 multiplies it (line 9), and thread 0 wrote it (line 5), with no barrier between"},
	{"no fence of registers", "WGMMA_FENCE(d, 8);", "", "thread 127 begins the product of line 9 with no WGMMA_FENCE before it"},
	{"sums that are changed too early", "WGMMA_COMMIT();", "WGMMA_COMMIT(); d[3] = 0;", "thread 0 has changed sums of the product of line 9 before it waited for them"},
	{"sums that are stored too early", "WGMMA_WAIT_ALL(d, 8);", "STORE(c, TID, d[0]); WGMMA_WAIT_ALL(d, 8);", "thread 0 stores a sum (line 11) before it has waited for the product of line 9"},
	{"nobody waits", "WGMMA_WAIT_ALL(d, 8);", "if (TID > 200) WGMMA_WAIT_ALL(d, 8);", "thread 0 stores a sum (line 13) before it has waited for the product of line 9"},
	{"a wait for all but one", "WGMMA_WAIT_ALL(d, 8);", "WGMMA_WAIT(1);", "thread 0 stores a sum (line 13) before it has waited for the product of line 9"},
	{"a write of what is being read", "WGMMA_COMMIT();", "WGMMA_COMMIT(); STORE(sb, TID, 0);", "thread 0 writes sb[0] (line 10), and not all have waited for the product of line 9, which reads it"},
	{"a write of what others have read", "WGMMA_WAIT_ALL(d, 8);", "WGMMA_WAIT_ALL(d, 8); SHUFFLE_XOR(1, 1); if (TID == 5) STORE(sb, 0, 0);", "race on sb[0]: thread 5 writes it (line 11), and thread"},
	{"threads that leave it out", "WGMMA(16,", "if (TID < 96) WGMMA(16,", "divergence: thread 0 waits at the product of line 9 with 95 others, but thread 96 of the same warpgroup"},
	{"different operands", "d, 4, sa", "d, TID == 64 ? 2 : 4, sa", "divergence: thread 64 is at the product of line 9, but 63 others of the warpgroup wait at that of line 9, or give it other operands"},
	{"rows that no group of eight begins with", "sa, 0, 0", "sa, 16, 0", "the product of line 9 cannot read 64 by 16 elements from element 16 of sa on, whose rows have 16"},
	{"an array that is not swizzled", "SWIZZLED_ARRAY(uint16_t, sb, 16 * 16, 16, 16)", "SHARED_ARRAY(uint16_t, sb, 16 * 16)", "the product of line 9 reads sb, which is no SWIZZLED_ARRAY"},
	{"rows that cannot be swizzled", "sb, 16 * 16, 16, 16", "sb, 16 * 24, 24, 16", "sb has no matrices that can be swizzled: 16 rows of 48 bytes"},
	{"a matrix that nobody wrote", "STORE(sb, i, LOAD(b, i));", "if (i != 20) STORE(sb, i, LOAD(b, i));", "reads sb[20], which nobody wrote (line 9)"},
}

const productKernel = `TILTH_KERNEL(k, 128)(GLOBAL const uint16_t *restrict a, GLOBAL const uint16_t *restrict b, GLOBAL float *restrict c) {
GLOBAL_ARRAY(a, 64 * 16); GLOBAL_ARRAY(b, 16 * 16); GLOBAL_ARRAY(c, 64 * 16);
SWIZZLED_ARRAY(uint16_t, sa, 64 * 16, 16, 64); SWIZZLED_ARRAY(uint16_t, sb, 16 * 16, 16, 16);
float d[8] = {1, 2, 3, 4, 5, 6, 7, 8};
for (int i = TID; i < 64 * 16; i += 128) STORE(sa, i, LOAD(a, i));
for (int i = TID; i < 16 * 16; i += 128) STORE(sb, i, LOAD(b, i));
FENCE_ASYNC(); BARRIER();
WGMMA_FENCE(d, 8);
WGMMA(16, BF16, d, 4, sa, 0, 0, sb, 0, 0);
WGMMA_COMMIT();
WGMMA_WAIT_ALL(d, 8);
UNROLL
for (int e = 0; e < 8; e++) STORE(c, TID * 8 + e, d[e]);
}
`

// TestMistakesAroundProductsAreReported runs each kernel in a process of its own, the one that is right first.
func TestMistakesAroundProductsAreReported(t *testing.T) {
	var kernels, thunks, launches strings.Builder
	add := func(k int, kernel string) {
		fmt.Fprintf(&kernels, "#line 1\n%s", strings.Replace(kernel, "TILTH_KERNEL(k,", fmt.Sprintf("TILTH_KERNEL(k%d,", k), 1))
		fmt.Fprintf(&thunks, "THUNK(k%d, a[0], a[1], a[2])\n", k)
		fmt.Fprintf(&launches, "  if (!fork()) {\n    LAUNCH(k%d, 128, 1, 1, (OUT(c, 64 * 16)), a, b, c);\n    _exit(0);\n  }\n  wait(0);\n", k)
	}
	add(0, productKernel)
	for k, f := range productFaults {
		if !strings.Contains(productKernel, f.instead) {
			t.Fatalf("there is no %s in the kernel", f.instead)
		}
		add(k+1, strings.Replace(productKernel, f.instead, f.put, 1))
	}
	host := "#include <sys/wait.h>\n" + thunks.String() + "int main(void) {\n  uint16_t *a = room(64 * 16 * 2), *b = room(16 * 16 * 2);\n" +
		"  float *c = room(64 * 16 * 4);\n" + launches.String() + "  return 0;\n}\n"
	out, err := clang.run(t, kernels.String(), host, 1)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != len(productFaults) {
		t.Fatalf("%d reports of %d mistakes:\n%s", len(lines), len(productFaults), out)
	}
	for k, f := range productFaults {
		if !strings.HasPrefix(lines[k], fmt.Sprintf("gpu-sim: kernel k%d, block 0: ", k+1)) || !strings.Contains(lines[k], f.want) {
			t.Errorf("%s: it wrote\n%s\nwant\n%s", f.name, lines[k], f.want)
		}
	}
}
