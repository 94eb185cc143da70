package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// waits reports whether a statement waits for products.
func waits(st ir.Stmt) bool {
	c, ok := st.(*ir.Call)
	return ok && c.Waits == nvidia.Products
}

// before returns the program of a trace for a warpgroup before the pass.
func before(t *testing.T, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, trace))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	return pass.Tensorize(f)
}

// TestThereAreNoWaitsWithoutProducts: operands that are not swizzled use plain arithmetic.
func TestThereAreNoWaitsWithoutProducts(t *testing.T) {
	f := pass.Products(before(t, strings.NewReplacer("swizzle 2\n", "", "swizzle 3\n", "").Replace(kerneltest.WarpgroupTile)))
	ir.Visit(f.Body, func(st ir.Stmt) {
		if waits(st) {
			t.Error("products are waited for that nobody begins")
		}
	})
}

// TestProductsUnderAConditionAreWaitedFor: blocks may have loops of their own where a tile ends.
func TestProductsUnderAConditionAreWaitedFor(t *testing.T) {
	f := before(t, kerneltest.WarpgroupTile)
	number := func(f *ir.Func) (n int) {
		ir.Visit(f.Body, func(st ir.Stmt) {
			if waits(st) {
				n++
			}
		})
		return n
	}
	launch := f.Body[0].(*ir.For)
	some := expr.Bin(expr.Lt, launch.Var, expr.I(1))
	under := f.With(ir.Block{launch.With(ir.Block{&ir.If{Cond: some, Then: launch.Body, Else: launch.Body}})})
	if got, want := number(pass.Products(under)), 2*number(pass.Products(f)); got != want || want == 0 {
		t.Errorf("%d waits in both ways of a condition, want %d", got, want)
	}
}
