package macros

import (
	"fmt"
	"strings"
	"testing"
)

// productFaults lists mistakes around a warpgroup product: replacements of correct text in productKernel. Its lines
// are numbered from 1.
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

// copyFaults lists mistakes around bulk copies: replacements of correct text in copyKernel.
var copyFaults = []struct{ name, instead, put, want string }{
	{"no fence behind the mbarrier", "FENCE_ASYNC();", "", "thread 0 copies for full[0] (line 8), with no FENCE_ASYNC and barrier behind its beginning (line 4)"},
	{"another thread's mbarrier, with no barrier", "BARRIER();", "", "race on full[0]: thread 1 reads it (line 10), and thread 0 wrote it (line 4), with no barrier between"},
	{"a read without a wait", "MBARRIER_WAIT(full, 0, 0);", "", "thread 127 reads s[63], which nobody wrote (line 11)"},
	{"the other phase", "MBARRIER_WAIT(full, 0, 0);", "MBARRIER_WAIT(full, 0, 1);", "thread 127 reads s[63], which nobody wrote (line 11)"},
	{"a thread that does not wait", "MBARRIER_WAIT(full, 0, 0);", "if (TID) MBARRIER_WAIT(full, 0, 0);", "thread 0 reads s[0] (line 11), and thread 0 has not waited for its copy of it (line 8)"},
	{"a wait of one thread for others", "MBARRIER_WAIT(full, 0, 0);", "if (!TID) MBARRIER_WAIT(full, 0, 0); SHUFFLE_XOR(1, 1); if (TID < 32)", "it (line 11), and thread 0 wrote it (line 8), with no barrier between"},
	{"a phase that never ends", "MBARRIER_EXPECT(full, 0, 256)", "MBARRIER_EXPECT(full, 0, 512)", "waits for a phase of full[0] (line 10), of which 0 arrivals and 256 bytes are missing"},
	{"more bytes than were told", "MBARRIER_EXPECT(full, 0, 256)", "MBARRIER_EXPECT(full, 0, 128)", "copies bring 256 bytes for a phase of full[0], which expects 128"},
	{"two arrivals for one", "MBARRIER_EXPECT(full, 0, 256);", "MBARRIER_EXPECT(full, 0, 128); MBARRIER_EXPECT(full, 0, 128);", "thread 0 arrives at full[0] (line 7), whose phase nobody else has to, before it waited for its end"},
	{"bytes that are no multiple of 16", "COPY_BULK(256", "COPY_BULK(40", "thread 0 copies 40 bytes to s (line 8), which is no multiple of 16, or swizzled"},
	{"elements that are not aligned", "x, 0, full, 0", "x, 2, full, 0", "thread 0 uses 16 bytes at element 2 of x, which are not aligned to their size (line 8)"},
	{"an end before the copy", "MBARRIER_WAIT(full, 0, 0);", "return;", "the block ends, and nobody has waited for the copy of line 8"},
	{"a write of what is copied to", "COPY_BULK(", "STORE(s, 5, 1); COPY_BULK(256, s, 0, x, 0, full, 0); STORE(s, 5, 1); COPY_BULK(", "thread 0 writes s[5] (line 8), and thread 0 has not waited for its copy of it (line 8)"},
}

// boxFaults lists mistakes around TMA copies of boxes: replacements of correct text in boxKernel. Its map has 40 rows
// of 24 numbers, with boxes of 8 by 8.
var boxFaults = []struct{ name, instead, put, want string }{
	{"no fence behind the mbarrier", "FENCE_ASYNC();", "", "thread 0 copies for full[0] (line 9), with no FENCE_ASYNC and barrier behind its beginning (line 5)"},
	{"a read without a wait", "MBARRIER_WAIT(full, 0, 0);", "", "thread 127 reads s[63], which nobody wrote (line 12)"},
	{"a thread that does not wait", "MBARRIER_WAIT(full, 0, 0);", "if (TID) MBARRIER_WAIT(full, 0, 0);", "thread 0 reads s[0] (line 12), and thread 0 has not waited for its copy of it (line 9)"},
	{"a wait of one thread for others", "MBARRIER_WAIT(full, 0, 0);", "if (!TID) MBARRIER_WAIT(full, 0, 0); SHUFFLE_XOR(1, 1); if (TID < 32)", "it (line 12), and thread 0 wrote it (line 9), with no barrier between"},
	{"a phase that never ends", "MBARRIER_EXPECT(full, 0, 256)", "MBARRIER_EXPECT(full, 0, 512)", "waits for a phase of full[0] (line 11), of which 0 arrivals and 256 bytes are missing"},
	{"bytes that are counted without what is zero", "MBARRIER_EXPECT(full, 0, 256)", "MBARRIER_EXPECT(full, 0, 192)", "copies bring 256 bytes for a phase of full[0], which expects 192"},
	{"a box that begins within a row", "s, 0, map", "s, 4, map", "thread 0 copies a box to element 4 of s (line 9), which is not aligned to 128 bytes"},
	{"a box that goes beyond the array", "s, 0, map", "s, 64, map", "thread 0 uses element 64 of s, which has 64 (line 9)"},
	{"an array with other panels", "s, 64, 8, 8", "s, 64, 16, 8", "s has no matrices that can be swizzled"},
	{"an array with longer rows", "s, 64, 8, 8", "s, 128, 16, 8", "thread 0 copies boxes with rows of 32 bytes to s (line 9), whose panels have 64"},
	{"an array that is not swizzled", "SWIZZLED_ARRAY(float, s, 64, 8, 8)", "SHARED_ARRAY(float, s, 64)", "thread 0 copies boxes with rows of 32 bytes to s (line 9), whose panels have 0"},
	{"another number of dimensions", "COPY_TENSOR_2D(s, 0, map, 16, 36,", "COPY_TENSOR_3D(s, 0, map, 16, 36, 0,", "thread 0 copies a box of 3 dimensions (line 9), and the tensor map has 2"},
	{"the map of another tensor", "map, x, k", "map, y, k", "the tensor map map is not that of y (line 3)"},
	{"a map that begins anywhere", "TENSOR_MAP_OF(map, x, k, 3);", "TENSOR_MAP_OF(map, x, k, 3); TENSOR_MAP_OF(other, x, k, 4);", "the tensor map other begins at no multiple of 16 bytes (line 3)"},
	{"a write of what is copied to", "COPY_TENSOR_2D(s, 0, map", "STORE(s, 5, 1); COPY_TENSOR_2D(s, 0, map, 16, 36, full, 0); STORE(s, 5, 1); COPY_TENSOR_2D(s, 0, map", "thread 0 writes s[5] (line 9), and thread 0 has not waited for its copy of it (line 9)"},
	{"a tensor that another thread writes", "if (TID == 0) {\nMBARRIER_EXPECT(full, 0, 256);\nCOPY_TENSOR_2D(s, 0, map, 16, 36,",
		"if (TID == 5) STORE(y, 24, 1); if (TID == 0) {\nMBARRIER_EXPECT(full, 0, 256);\nCOPY_TENSOR_2D(s, 0, written, 0, 0,",
		"race on y[24]: thread 0 reads it (line 9), and thread 5 wrote it (line 7), with no barrier between"},
	{"an end before the copy", "MBARRIER_WAIT(full, 0, 0);", "return;", "the block ends, and nobody has waited for the copy of line 9"},
	{"an mbarrier in the place of another", "MBARRIER_WAIT(full, 0, 0);", "MBARRIER_WAIT(full, 0, 0); BARRIER(); if (!TID) MBARRIER_INIT(full, 0, 1);", "thread 0 makes an mbarrier of full[0] (line 11), which is one"},
	{"the end of an mbarrier that is used", "MBARRIER_WAIT(full, 0, 0);", "if (!TID) MBARRIER_INVALIDATE(full, 0); MBARRIER_WAIT(full, 0, 0);", "full[0] (line 11), "},
}

const boxesOf = `static struct sim_map boxes_of(const void *x) {
  return (struct sim_map){.address = (uintptr_t)x, .kind = SIM_MAP, .dimensions = 2, .element_bytes = 4, .panel = 32,
      .last = {23, 39}, .strides = {0, 24 * 4}, .box = {8, 8}};
}
`

const boxKernel = `TILTH_KERNEL(k, 128)(GLOBAL const float *restrict x, GLOBAL const float *restrict unused, GLOBAL float *restrict y, TENSOR_MAP map, TENSOR_MAP other, TENSOR_MAP written) {
GLOBAL_ARRAY(x, 40 * 24); GLOBAL_ARRAY(y, 64 * 16); SWIZZLED_ARRAY(float, s, 64, 8, 8); SHARED_ARRAY(uint64_t, full, 1);
TENSOR_MAP_OF(map, x, k, 3); TENSOR_MAP_OF(written, y, k, 5);
if (TID == 0) {
MBARRIER_INIT(full, 0, 1); FENCE_ASYNC(); }
BARRIER();
if (TID == 0) {
MBARRIER_EXPECT(full, 0, 256);
COPY_TENSOR_2D(s, 0, map, 16, 36, full, 0);
}
MBARRIER_WAIT(full, 0, 0);
STORE(y, TID, LOAD(s, TID % 64));
}
`

const copyKernel = `TILTH_KERNEL(k, 128)(GLOBAL const float *restrict x, GLOBAL const float *restrict unused, GLOBAL float *restrict y) {
GLOBAL_ARRAY(x, 64 * 16); GLOBAL_ARRAY(y, 64 * 16); SHARED_ARRAY(float, s, 64); SHARED_ARRAY(uint64_t, full, 1);
if (TID == 0) {
MBARRIER_INIT(full, 0, 1); FENCE_ASYNC(); }
BARRIER();
if (TID == 0) {
MBARRIER_EXPECT(full, 0, 256);
COPY_BULK(256, s, 0, x, 0, full, 0);
}
MBARRIER_WAIT(full, 0, 0);
STORE(y, TID, LOAD(s, TID % 64));
}
`

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

// TestMistakesAroundProductsAndBulkCopiesAreReported runs each kernel in a separate process, the correct ones first.
func TestMistakesAroundProductsAndBulkCopiesAreReported(t *testing.T) {
	var kernels, thunks, launches strings.Builder
	n := 0
	add := func(kernel, instead, put string) {
		maps := ""
		if strings.Contains(kernel, "TENSOR_MAP") {
			maps = ", boxes_of(a[0]), boxes_of((float *)a[0] + 1), boxes_of(a[2])"
		}
		if !strings.Contains(kernel, instead) {
			t.Fatalf("there is no %s in the kernel", instead)
		}
		kernel = strings.Replace(kernel, instead, put, 1)
		fmt.Fprintf(&kernels, "#line 1\n%s", strings.Replace(kernel, "TILTH_KERNEL(k,", fmt.Sprintf("TILTH_KERNEL(k%d,", n), 1))
		fmt.Fprintf(&thunks, "THUNK(k%d, a[0], a[1], a[2]%s)\n", n, maps)
		fmt.Fprintf(&launches, "  if (!fork()) {\n    LAUNCH(k%d, 128, 1, 1, (OUT(c, 64 * 16)), a, b, c);\n    _exit(0);\n  }\n  wait(0);\n", n)
		n++
	}
	add(productKernel, "", "")
	add(copyKernel, "", "")
	add(boxKernel, "", "")
	var names, wants []string
	for _, f := range productFaults {
		add(productKernel, f.instead, f.put)
		names, wants = append(names, f.name), append(wants, f.want)
	}
	for _, f := range copyFaults {
		add(copyKernel, f.instead, f.put)
		names, wants = append(names, f.name), append(wants, f.want)
	}
	for _, f := range boxFaults {
		add(boxKernel, f.instead, f.put)
		names, wants = append(names, f.name), append(wants, f.want)
	}
	host := "#include <sys/wait.h>\n" + boxesOf + thunks.String() + "int main(void) {\n  void *a = room(64 * 16 * 4), *b = room(64 * 16 * 4);\n" +
		"  float *c = room(64 * 16 * 4);\n" + launches.String() + "  return 0;\n}\n"
	out, err := clang.run(t, kernels.String(), host, 1)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != len(wants) {
		t.Fatalf("%d reports of %d mistakes:\n%s", len(lines), len(wants), out)
	}
	for k, want := range wants {
		if !strings.HasPrefix(lines[k], fmt.Sprintf("gpu-sim: kernel k%d, block 0: ", k+3)) || !strings.Contains(lines[k], want) {
			t.Errorf("%s: it wrote\n%s\nwant\n%s", names[k], lines[k], want)
		}
	}
}
