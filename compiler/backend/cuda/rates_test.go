package cuda_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// rateKernels writes the kernels that measure a GPU's matrix products, each to its own file.
const rateKernels = `#include "warpgroups.h"
int main(int argc, char **argv) {
  char code[MATRICES_CODE];
  for (int k = 0; k < MATRICES_FORMATS && k + 1 < argc; k++) {
    (matrices[k].warps == 1 ? matrices_code : warpgroups_code)(&matrices[k], code);
    FILE *f = fopen(argv[1 + k], "w");
    if (!f || fputs(code, f) < 0 || fclose(f)) return 1;
  }
  return 0;
}
`

// rates lists those kernels: the instruction set, and the instruction in PTX and in a cubin.
var rates = []struct{ arch, instruction, machine string }{
	{"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ", "HMMA.1688.F32.TF32"},
	{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ", "HMMA.16816.F32.BF16"},
	{"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ", "HMMA.16816.F32"},
	{"sm_80", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ", "IMMA.16832.S8.S8"},
	{"sm_90a", "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 ", "HGMMA.64x256x8.F32.TF32"},
	{"sm_90a", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 ", "HGMMA.64x256x16.F32.BF16"},
	{"sm_90a", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 ", "HGMMA.64x256x16.F32"},
	{"sm_90a", "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 ", "IGMMA.64x256x32.S8.S8"},
}

// assembling bounds an assembler, which could take minutes for unrolled loops of warpgroup products.
const assembling = time.Minute

// TestRatesOfMatricesAreThoseOfTheirInstructions checks that each kernel has as many instructions as its rate counts.
// With NVIDIA's assembler and disassembler, it also checks that they spill nothing and use the GPU's instructions.
func TestRatesOfMatricesAreThoseOfTheirInstructions(t *testing.T) {
	tc, on := toolchaintest.Native(t, 1)
	dir := t.TempDir()
	program, files := filepath.Join(dir, "kernels"), []string{}
	for k := range rates {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.ptx", k)))
	}
	err := tc.Build(t.Context(), toolchain.Build{
		Target: on, Form: toolchain.Executable, Headers: cuda.DriverSources(), Sources: []toolchain.File{{Name: "kernels.c", Text: rateKernels}},
	}, program)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, files...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for k, r := range rates {
		text, err := os.ReadFile(files[k])
		if err != nil {
			t.Fatal(err)
		}
		_, loop, _ := strings.Cut(string(text), "more:\n")
		if !strings.Contains(string(text), ".target "+r.arch+"\n") || !strings.HasSuffix(string(text), "  ret;\n}\n") || strings.Count(loop, r.instruction) != 4 {
			t.Errorf("kernel %d for %s has no loop of four times %s:\n%s", k, r.arch, r.instruction, text)
		}
		assembled(t, tc, r.arch, files[k], r.machine)
	}
}

// assembled fails if NVIDIA's tools are available and do not assemble PTX to the expected code.
func assembled(t *testing.T, tc *toolchain.Toolchain, arch, file, instruction string) {
	t.Helper()
	on, err := (cuda.Backend{}).Target(arch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ptxas"); err != nil || !toolchain.Assembles(tc.For(on)) {
		t.Logf("there is no ptxas for %s", arch)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), assembling)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ptxas", "-v", "-arch="+arch, file, "-o", file+".cubin").CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 bytes spill stores") || strings.Contains(string(out), "Potential Performance Loss") {
		t.Errorf("%s: %v\n%s", file, err, out)
		return
	}
	code, err := exec.CommandContext(ctx, "cuobjdump", "-sass", file+".cubin").Output()
	if err != nil {
		t.Logf("there is no cuobjdump for %s: %v", arch, err)
		return
	}
	if !strings.Contains(string(code), instruction) {
		t.Errorf("there is no %s in\n%s", instruction, code)
	}
}
