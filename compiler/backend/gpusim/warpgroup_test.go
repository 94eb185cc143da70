package gpusim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// transposed is a product of two matrices of bytes whose rows are terms.
const transposed = `tilth-workload 1
input t0 i8[200,256]
input t1 i8[520,256]
sum t2 i32[200,520] over 256 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 i1 r0]))
output t2
`

// TestPointsOfWarpgroupsMultiplyByThem checks that a legal point's loops are proved to match the instructions, and
// that the default schedule is such a point if numerics allow no cheaper format.
func TestPointsOfWarpgroupsMultiplyByThem(t *testing.T) {
	on := played(t)
	bytes, err := expr.Parse(transposed)
	if err != nil {
		t.Fatal(err)
	}
	points := 20
	if testing.Short() {
		points = 5
	}
	for name, w := range map[string]*expr.Workload{
		"warpgroup TF32": kerneltest.Product(t, 197, 256, 500), "warpgroup BF16": kerneltest.ProductOf(t, array.BFloat16, 16, 256, 24),
		"warpgroup F16": kerneltest.ProductOf(t, array.Float16, 256, 256, 512), "warpgroup I8": bytes,
	} {
		s := Backend{}.Space(w, on, schedule.Fast)
		if by := s.Algorithm(s.Default()); by.Name != name && name != "warpgroup TF32" {
			t.Errorf("the default schedule of %s computes by %s", name, by.Name)
		}
		for _, by := range s.Algorithms() {
			if by.Name == name {
				s = s.Of(by)
			}
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range points {
			p, ok := s.Random(rng)
			if !ok {
				t.Fatalf("%s has no point", name)
			}
			made, err := s.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			f, err := codegen.Lower(made, on.GPU)
			if err != nil {
				t.Fatal(err)
			}
			if !multiplies(f) {
				t.Fatalf("%s: %s does not multiply by instructions:\n%s", name, s.Format(p), f.Text())
			}
		}
	}
}

func multiplies(f *ir.Func) bool {
	return ir.Any(f.Body, func(c *ir.Call) bool { return c.Starts == nvidia.Products })
}

// TestOnlyCardsWithWarpgroupsUseThem covers the GPUs before and after Hopper, which have none.
func TestOnlyCardsWithWarpgroupsUseThem(t *testing.T) {
	on := played(t).Clone()
	gpu := *on.GPU
	gpu.Arch, on.GPU = "sm_89", &gpu
	for _, by := range (Backend{}).Space(kerneltest.ProductOf(t, array.BFloat16, 256, 256, 512), on, schedule.Fast).Algorithms() {
		if strings.HasPrefix(by.Name, "warpgroup") {
			t.Errorf("there is %s for %s", by.Name, gpu.Arch)
		}
	}
}

// TestEachAlgorithmOfNarrowProductsHasAPoint checks that products too narrow for warpgroup instructions use those of
// warps.
func TestEachAlgorithmOfNarrowProductsHasAPoint(t *testing.T) {
	on := played(t)
	for columns := int64(4); columns <= 24; columns += 4 {
		for _, d := range []array.DType{array.Float32, array.BFloat16} {
			s := Backend{}.Space(kerneltest.ProductOf(t, d, 9, 64, columns), on, schedule.Fast)
			groups := false
			for _, by := range s.Algorithms() {
				of := s.Of(by)
				if _, err := of.Apply(of.Default()); err != nil {
					t.Errorf("%d columns of %s, %s: %v", columns, d, by.Name, err)
				}
				groups = groups || strings.HasPrefix(by.Name, "warpgroup")
			}
			if groups != (columns > 8) {
				t.Errorf("%d columns of %s are computed by warpgroups: %t", columns, d, groups)
			}
		}
	}
}
