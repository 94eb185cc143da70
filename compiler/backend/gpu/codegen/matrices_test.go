package codegen_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestMatricesAreMultipliedByInstructions covers each format, with operands prefetched 16 bytes at a time.
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
		stages := int64(3)
		if strings.HasPrefix(c.algorithm, "warpgroup") {
			stages = 4
		}
		s := by(t, b.Space(kerneltest.ProductOf(t, c.operands, 512, 512, 512), on, schedule.Fast), c.algorithm)
		s = restricted(t, s, map[string]int64{"stages": stages})
		k := printPoint(t, s, s.Default(), on)
		k.has(t, k.ptx(t), c.instruction, "cp.async.wait_group 1")
	}
}

// rowsOfMatrices matches the stride in elements of rows that a warp loads as matrices.
var rowsOfMatrices = regexp.MustCompile(`LDMATRIX_.* row_\d+ \* (\d+)`)

// TestOperandsOf16BitsAreLoadedAsMatrices expects loads of four matrices: rows of terms directly, rows of columns
// transposed. Their stride is an odd multiple of 16 bytes, so that eight of them use different banks.
func TestOperandsOf16BitsAreLoadedAsMatrices(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	for algorithm, d := range map[string]array.DType{"BF16": array.BFloat16, "F16": array.Float16} {
		s := by(t, b.Space(kerneltest.ProductOf(t, d, 512, 512, 512), on, schedule.Fast), algorithm)
		k := printPoint(t, s, s.Default(), on)
		made := k.ptx(t)
		k.has(t, made, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
		k.lacks(t, made, "ld.shared")
		for _, m := range rowsOfMatrices.FindAllStringSubmatch(k.text(), -1) {
			if elements, err := strconv.Atoi(m[1]); err != nil || elements%8 != 0 || elements/8%2 != 1 {
				t.Errorf("rows of matrices are %s elements apart:\n%s", m[1], k.text())
			}
		}
	}
}

// TestMatricesNeedNotBeWhole checks that tiles are padded with zeros beyond the ends of rows and columns.
func TestMatricesNeedNotBeWhole(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	s := by(t, b.Space(kerneltest.Product(t, 197, 512, 500), on, schedule.Fast), "BF16")
	k := printPoint(t, s, s.Default(), on)
	made := k.ptx(t)
	k.has(t, made, "mma.sync")
	k.lacks(t, made, "fma.rn.f32")
}

// TestPositionsAreJoined checks that tiles of 64 positions cross the ends of rows of images that are 14 wide, and
// that instructions multiply all positions.
func TestPositionsAreJoined(t *testing.T) {
	b := gpusim.Backend{}
	on := card(t, b)
	w := parsed(t, `input t0 f32[14,14,64]
constant t1 f32[3,3,64,96]
map t2 f32[16,16,64] = (select (and (and (le 1 i0) (lt i0 15)) (and (le 1 i1) (lt i1 15))) [t0 (sub i0 1) (sub i1 1) i2] 0x0p+00:f32)
sum t3 f32[14,14,96] over 3,3,64 = (mul [t2 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t3
`)
	s := by(t, b.Space(w, on, schedule.Fast), "BF16")
	s = restricted(t, s, map[string]int64{"joint": 1, "tall": 2, "rows": 2, "parts": 1})
	k := printPoint(t, s, s.Default(), on)
	made := k.ptx(t)
	k.has(t, made, "mma.sync")
	k.lacks(t, made, "fma.rn.f32")
	if blocks := k.kernels[0].Blocks; blocks%4 != 0 {
		t.Errorf("%d blocks, by %s:\n%s", blocks, k.point, k.text())
	}
}
