package macros

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// warpWords lists the prefixes of macros that require warps, and of instructions for matrices and their copies.
var warpWords = []string{
	"LDMATRIX", "MMA", "PACK", "TF32", "BF16X2", "WGMMA", "SWIZZLED", "FENCE_ASYNC", "MBARRIER", "COPY_BULK", "COPY_TENSOR",
	"TENSOR_MAP", "SHUFFLE", "WARP_BARRIER",
}

func isWarpWord(word string) bool {
	return slices.ContainsFunc(warpWords, func(w string) bool { return strings.HasPrefix(word, w) })
}

// TestOpenCLHasAllMacrosButThoseForWarps compares the macros with those of the other dialects.
func TestOpenCLHasAllMacrosButThoseForWarps(t *testing.T) {
	want := slices.DeleteFunc(words(nvptx, "NVPTX_"), isWarpWord)
	if got := words(opencl, "OPENCL_"); !slices.Equal(got, want) || len(got) < 20 {
		t.Errorf("opencl.h has\n%v, want\n%v", got, want)
	}
}

// simtKernels returns the files of kernels without such macros.
func simtKernels(t testing.TB) []string {
	return slices.DeleteFunc(kernelNames(t), func(name string) bool {
		text := read(t, "kernels", name+".c")
		return slices.ContainsFunc(warpWords, func(w string) bool { return strings.Contains(text, w) })
	})
}

// compileOpenCL compiles kernels with clang and returns the output.
func compileOpenCL(t testing.TB, kernels string, flags []string) []byte {
	t.Helper()
	object, err := toolchaintest.Program(t, "clang-19", slices.Concat(strict, flags), OpenCL(kernels))
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestKernelsAreOpenCL covers devices with and without doubles.
func TestKernelsAreOpenCL(t *testing.T) {
	for _, name := range simtKernels(t) {
		compileOpenCL(t, read(t, "kernels", name+".c"), SPIRFlags("cl_khr_fp64"))
		if name != "math" && !testing.Short() {
			compileOpenCL(t, read(t, "kernels", name+".c"), SPIRFlags(""))
		}
	}
	const head = "TILTH_KERNEL(k, 1)(GLOBAL float *restrict y, GLOBAL int32_t *restrict n) {\n  GLOBAL_ARRAY(y, 1);\n  GLOBAL_ARRAY(n, 1);\n"
	compileOpenCL(t, head+"  STORE(y, 0, tilth_sinf(LOAD(y, 0)));\n  ATOMIC_ADD(y, 0, 1);\n  ATOMIC_ADD(n, 0, 1);\n}\n", SPIRFlags(""))
}

// amdChips lists AMD GPUs: two accelerators and a consumer GPU.
var amdChips = []string{"gfx90a", "gfx942", "gfx1100"}

// TestKernelsAssembleForAMD checks that the text compiles to object code. It has not been run on such a GPU.
func TestKernelsAssembleForAMD(t *testing.T) {
	targets, err := exec.CommandContext(t.Context(), "clang-19", "--print-targets").Output()
	if err != nil || !strings.Contains(string(targets), "amdgcn") {
		t.Skip("there is no clang-19 with the target amdgcn")
	}
	for _, arch := range amdChips {
		for _, name := range simtKernels(t) {
			if testing.Short() && (arch != amdChips[0] || name == "math") {
				continue
			}
			t.Run(arch+"/"+name, func(t *testing.T) {
				t.Parallel()
				made := compileOpenCL(t, read(t, "kernels", name+".c"), amdFlags(arch))
				if !strings.HasPrefix(string(made), "\x7fELF") || !strings.Contains(string(made), ".kd\x00") {
					t.Errorf("the object of %d bytes has no kernel", len(made))
				}
			})
		}
	}
}

// amdFlags returns clang's flags to compile such text to object code for an AMD GPU, such as gfx90a.
func amdFlags(arch string) []string {
	return append([]string{"--target=amdgcn-amd-amdhsa", "-nogpulib", "-mcpu=" + arch}, openclFlags...)
}
