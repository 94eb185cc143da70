package codegen

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// packedProduct returns a matrix product whose right operand is packed in panels of the given widths, with a kernel
// for each.
func packedProduct(t *testing.T, widths ...int64) (*expr.Workload, []backend.Kernel) {
	t.Helper()
	a, b := expr.NewInput("a", array.Float32, 8, 16), expr.NewConstant("b", array.Float32, 16, 32)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("sum", expr.Sum, []int64{8, 32}, []int64{16}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})})
	if err != nil {
		t.Fatal(err)
	}
	var kernels []backend.Kernel
	for _, width := range widths {
		s := schedule.New(w)
		if err := s.Pack(0, []schedule.PackDim{{Dim: 1, Factor: width}, {Dim: 0}, {Dim: 1, Factor: width, Inner: true}}); err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, backend.Kernel{ID: "k", Schedule: s})
	}
	return w, kernels
}

func TestKernelsOfAModuleShareTheirPacks(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	w, kernels := packedProduct(t, 8, 16, 8, 8)
	text, err := Module(w, kernels, machine)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "static const struct tilth_pack pack"); n != 2 {
		t.Errorf("%d packs of 2 layouts", n)
	}
}

func TestPackagesHaveNoPacks(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, kernels := packedProduct(t, 8)
	u := NewUnit(machine)
	info, err := u.Add("k", "k", kernels[0].Schedule)
	if err != nil || len(info.Prepared) != 1 || strings.Contains(u.Source(), "_fill(") {
		t.Errorf("%v, %d packed constants, in\n%s", err, len(info.Prepared), u.Source())
	}
}

// TestPacksRunOnAllWorkers exists because transforming a large constant takes longer than measuring the kernel that
// reads it.
func TestPacksRunOnAllWorkers(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 2)
	if err != nil {
		t.Fatal(err)
	}
	w, kernels := packedProduct(t, 8)
	text, err := Module(w, kernels, machine)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "rt->parallel(rt, pack0_") {
		t.Errorf("the packing is not parallel:\n%s", text)
	}
}
