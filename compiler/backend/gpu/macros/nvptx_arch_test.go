package macros

import (
	"slices"
	"strings"
	"testing"
)

// TestCodeIsForAsManyChipsAsItCanBe checks that only warpgroup macros make code architecture-specific, and that chips
// newer than the compiler get code for older ones.
func TestCodeIsForAsManyChipsAsItCanBe(t *testing.T) {
	const plain, products, copies = "LOAD(a, 3); MMA_M16N8K8_TF32(d, 2, a, b);", "WGMMA(16, BF16, d, 4, sa, 0, 0, sb, 0, 0);", "COPY_TENSOR_2D(s, 0, m, 0, 0, full, 0);"
	for _, c := range []struct{ kernels, arch, want string }{
		{plain, "sm_80", "sm_80"},
		{plain, "sm_86", "sm_86"},
		{plain, "sm_88", "sm_87"},
		{plain, "sm_89", "sm_89"},
		{plain, "sm_90", "sm_90"},
		{plain, "sm_90a", "sm_90"},
		{products, "sm_90a", "sm_90a"},
		{copies, "sm_90a", "sm_90a"},
		{"MY_WGMMA(1); WGMMAS", "sm_90a", "sm_90"},
		{plain, "sm_100", "sm_90"},
		{plain, "sm_120", "sm_90"},
	} {
		if got := NVPTXArch(c.kernels, c.arch); got != c.want {
			t.Errorf("%s for %s is made for %s, want %s", c.kernels, c.arch, got, c.want)
		}
		if err := CheckNVPTX(c.arch); err != nil {
			t.Errorf("%s: %v", c.arch, err)
		}
	}
	words := wordsOf(nvptxWarpgroup)
	for _, want := range []string{"WGMMA", "WGMMA_WAIT_ALL", "FENCE_ASYNC", "MBARRIER_WAIT", "COPY_BULK", "TENSOR_MAP", "COPY_TENSOR_5D"} {
		if !slices.Contains(words, want) {
			t.Errorf("%s is none of %v", want, words)
		}
	}
}

// TestCardsThatLackInstructionsAreRefused checks that they are refused before compilation.
func TestCardsThatLackInstructionsAreRefused(t *testing.T) {
	for arch, want := range map[string]string{
		"sm_75": "its instruction set sm_75 is too old: kernels need sm_80 or newer", "sm_61": "sm_80 or newer", "gfx90a": `"gfx90a" is not an instruction set of NVIDIA's`,
		"sm_": "is not", "sm_99999": "is not",
	} {
		if err := CheckNVPTX(arch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arch, err, want)
		}
	}
}
