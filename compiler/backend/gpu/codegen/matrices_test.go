package codegen_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestMatricesAreMultipliedByInstructions: in each format, with operands that come ahead in 16 bytes at a time, and
// nothing of a thread's in memory.
func TestMatricesAreMultipliedByInstructions(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	float := array.Float32
	for _, c := range []struct {
		operands    array.DType
		algorithm   string
		instruction string
	}{
		{float, "compensated TF32", "m16n8k8.row.col.f32.tf32.tf32.f32"}, {float, "TF32", "m16n8k8.row.col.f32.tf32.tf32.f32"},
		{float, "BF16", "m16n8k16.row.col.f32.bf16.bf16.f32"}, {array.BFloat16, "BF16", "m16n8k16.row.col.f32.bf16.bf16.f32"},
		{array.Float16, "F16", "m16n8k16.row.col.f32.f16.f16.f32"}, {array.Int8, "I8", "m16n8k32.row.col.s32.s8.s8.s32"},
		{array.Uint8, "I8", "m16n8k32.row.col.s32.u8.u8.s32"}, {array.BFloat16, "warpgroup BF16", "k16.f32.bf16.bf16"},
		{array.Float16, "warpgroup F16", "k16.f32.f16.f16"}, {float, "warpgroup TF32", "k8.f32.tf32.tf32"},
	} {
		s := b.Space(exprtest.ProductOf(t, c.operands, 512, 512, 512), on, schedule.Fast)
		for _, a := range s.Algorithms() {
			if a.Name == c.algorithm {
				s = s.Of(a)
			}
		}
		knobs := map[string][]int64{"stages": {3}}
		if strings.HasPrefix(c.algorithm, "warpgroup") {
			knobs = map[string][]int64{"stages": {4}}
		}
		s, err := s.Restrict(knobs)
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		f, err := codegen.Lower(made, on.GPU, nil)
		if err != nil {
			t.Fatal(err)
		}
		var helpers ctext.Declarations
		kernels := codegen.Kernels("product", f, &helpers, dialect.Text)
		arch := chips(kernels[0].Text)[0]
		text, err := ptx(t, arch, helpers.Text()+kernels[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, ".local") {
			t.Errorf("%s keeps results in memory:\n%s", s.Format(s.Default()), kernels[0].Text)
		}
		spillsNothing(t, arch, text)
		for _, want := range []string{c.instruction, "cp.async.wait_group 1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v, %s: there is no %s in\n%s", c.operands, s.Format(s.Default()), want, kernels[0].Text)
			}
		}
	}
}

// TestMatricesNeedNotBeWhole: tiles go beyond the ends of rows and of columns, where they have zeros.
func TestMatricesNeedNotBeWhole(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := b.Space(exprtest.Product(t, 197, 512, 500), on, schedule.Fast)
	for _, a := range s.Algorithms() {
		if a.Name == "BF16" {
			s = s.Of(a)
		}
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	text := codegen.Kernels("product", f, &helpers, dialect.Text)[0].Text
	made80, err := ptx(t, "sm_80", helpers.Text()+text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(made80, "mma.sync") || strings.Contains(made80, ".local") || strings.Contains(made80, "fma.rn.f32") {
		t.Errorf("%s has plain arithmetic, or results in memory:\n%s", s.Format(s.Default()), text)
	}
}

// TestPositionsAreJoined: of images that are 14 wide, tiles of 64 positions go on across the ends of rows, and
// instructions multiply all of them.
func TestPositionsAreJoined(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[14,14,64]
constant t1 f32[3,3,64,96]
map t2 f32[16,16,64] = (select (and (and (le 1 i0) (lt i0 15)) (and (le 1 i1) (lt i1 15))) [t0 (sub i0 1) (sub i1 1) i2] 0x0p+00:f32)
sum t3 f32[14,14,96] over 3,3,64 = (mul [t2 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t3
`)
	if err != nil {
		t.Fatal(err)
	}
	s := b.Space(w, on, schedule.Fast)
	for _, a := range s.Algorithms() {
		if a.Name == "BF16" {
			s = s.Of(a)
		}
	}
	s, err = s.Restrict(map[string][]int64{"joint": {1}, "tall": {2}, "rows": {2}, "parts": {1}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	f, err := codegen.Lower(made, on.GPU, nil)
	if err != nil {
		t.Fatal(err)
	}
	var helpers ctext.Declarations
	kernel := codegen.Kernels("conv", f, &helpers, dialect.Text)[0]
	text, err := ptx(t, "sm_80", helpers.Text()+kernel.Text)
	if err != nil {
		t.Fatal(err)
	}
	if kernel.Blocks%4 != 0 || !strings.Contains(text, "mma.sync") || strings.Contains(text, ".local") || strings.Contains(text, "fma.rn.f32") {
		t.Errorf("%d blocks, by %s:\n%s", kernel.Blocks, s.Format(s.Default()), kernel.Text)
	}
}
