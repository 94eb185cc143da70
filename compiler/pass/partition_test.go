package pass_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// padded returns a copy of a size x size image into the middle of one that is a pixel wider on every side.
func padded(t *testing.T, size int64) *expr.Workload {
	t.Helper()
	x := expr.NewInput("x", array.Float32, size, size)
	pad := expr.Compute("pad", []int64{size + 2, size + 2}, func(i []expr.Expr) expr.Expr {
		r, c := expr.SubE(i[0], expr.I(1)), expr.SubE(i[1], expr.I(1))
		return expr.Sel(expr.Bin(expr.And, expr.InRange(r, 0, size), expr.InRange(c, 0, size)), x.At(r, c), expr.F(array.Float32, 0))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{pad})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPaddingCopiesWithoutAConditionInTheInnerLoop(t *testing.T) {
	f, err := lower.Schedule(schedule.New(padded(t, 8)))
	if err != nil {
		t.Fatal(err)
	}
	before, after := pass.Comparisons(f.Body), pass.Comparisons(pass.Partition(f).Body)
	if len(before) != 4 || len(after) != 0 {
		t.Errorf("%d pass.Comparisons became %d, want 4 and none", len(before), len(after))
	}
}

// TestLoopsWithARangeAreNotPartitioned: a loop with a restricted range stays one loop, and keeps its range.
func TestLoopsWithARangeAreNotPartitioned(t *testing.T) {
	f, err := lower.Schedule(schedule.New(padded(t, 8)))
	if err != nil {
		t.Fatal(err)
	}
	rows := f.Body[0].(*ir.For)
	rows.Range = &ir.Range{First: expr.I(3), End: expr.I(9), Every: 2}
	after := pass.Partition(f)
	if rows, ok := after.Body[0].(*ir.For); !ok || len(after.Body) != 1 || rows.Range == nil {
		t.Errorf("the rows became\n%s", after.Text())
	}
}

// rowTiles pads 8 x 8 elements in tiles of 4 rows, of which the last of 10 begins where the one before has not ended.
func rowTiles(t *testing.T) (s *schedule.Schedule, tiles int) {
	t.Helper()
	s = schedule.New(padded(t, 8))
	tiles, inner, err := s.Split(0, 0, 4, schedule.Shift)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Reorder(0, tiles, 1, inner), s.Unroll(0, inner)); err != nil {
		t.Fatal(err)
	}
	return s, tiles
}

func TestShiftedTilesKeepNoCondition(t *testing.T) {
	s, _ := rowTiles(t)
	f, err := lower.Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err = pass.Unroll(pass.Partition(f), func(array.DType) int64 { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	body := f.Body
	if n := len(pass.Comparisons(body)); n != 0 {
		t.Errorf("%d pass.Comparisons are left", n)
	}
	if n := stores(body, 1); n != 3*4*10 {
		t.Errorf("%d elements are stored, want 3 tiles of 4 x 10", n)
	}
}

// TestBordersOfParallelRowsAreCut has the tiles in a parallel loop, which is not cut: at the border they check rows,
// but no columns.
func TestBordersOfParallelRowsAreCut(t *testing.T) {
	s, rows := rowTiles(t)
	if err := s.Parallel(0, rows); err != nil {
		t.Fatal(err)
	}
	f, err := lower.Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	ir.Visit(pass.Partition(f).Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Serial {
			for _, c := range pass.Comparisons(n.Body) {
				if expr.Uses(c, n.Var) {
					t.Errorf("a loop over columns of extent %d decides %v", n.Extent, c)
				}
			}
		}
	})
}

// TestOpenLoopsAreDividedAtTheFirstBorder: of n of 10 rows, only the first one and those from n-1 on compare.
func TestOpenLoopsAreDividedAtTheFirstBorder(t *testing.T) {
	f, err := lower.Schedule(schedule.New(padded(t, 8)))
	if err != nil {
		t.Fatal(err)
	}
	rows := f.Body[0].(*ir.For)
	rows.Range = &ir.Range{First: expr.I(0), End: &expr.Var{Name: "n", Extent: 11}, Every: 1}
	after := pass.Partition(f)
	if left := pass.Comparisons(after.Body); len(left) != 0 {
		t.Errorf("%d comparisons are left: %s", len(left), after.Text())
	}
}

func TestPartitionsCoverTheWholeRange(t *testing.T) {
	f, err := lower.Schedule(schedule.New(padded(t, 8)))
	if err != nil {
		t.Fatal(err)
	}
	if n := stores(pass.Partition(f).Body, 1); n != 100 {
		t.Errorf("%d elements are stored, want 10 x 10", n)
	}
}

// stores is how many stores a block executes, where each If executes either of its branches.
func stores(b ir.Block, times int64) int64 {
	total := int64(0)
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			total += stores(n.Body, times*n.Extent)
		case *ir.If:
			total += stores(n.Then, times)
		case *ir.Store:
			total += times
		}
	}
	return total
}

// TestPartitionChecksAWindowOncePerTile: of the rows of a window, a tile of the flattened positions of an image knows
// before its first whether all are inside.
func TestPartitionChecksAWindowOncePerTile(t *testing.T) {
	in, out := ir.Flat("in", array.Float32, 64), ir.Flat("out", array.Float32, 64)
	sum := &ir.Buffer{Tensor: ir.Flat("sum", array.Float32, 1), Space: ir.Register}
	p, row := &expr.Var{Name: "p", Extent: 64}, &expr.Var{Name: "row", Extent: 3}
	at := expr.SubE(expr.AddE(expr.Bin(expr.FloorDiv, p, expr.I(8)), row), expr.I(1))
	pixel := in.At(expr.Simplify(expr.AddE(expr.MulE(at, expr.I(8)), expr.Bin(expr.FloorMod, p, expr.I(8)))))
	padded := expr.Sel(expr.InRange(at, 0, 8), pixel, expr.F(array.Float32, 0))
	step := &ir.Store{Buffer: sum, Index: expr.I(0), Value: expr.AddE(sum.Tensor.At(expr.I(0)), padded)}
	tile := ir.Block{
		&ir.Alloc{Buffer: sum},
		&ir.Store{Buffer: sum, Index: expr.I(0), Value: expr.F(array.Float32, 0)},
		&ir.For{Var: row, Extent: 3, Kind: ir.Serial, Body: ir.Block{step}},
		&ir.Store{Buffer: &ir.Buffer{Tensor: out}, Index: p, Value: sum.Tensor.At(expr.I(0))},
	}
	f := pass.Partition(&ir.Func{Body: ir.Block{&ir.For{Var: p, Extent: 64, Kind: ir.Serial, Body: tile}}})
	inside := 0
	ir.Visit(f.Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Extent == 3 && len(pass.Comparisons(n.Body)) == 0 {
			inside++
		}
	})
	if inside != 1 {
		t.Errorf("%d loops over a window check nothing, want one:\n%s", inside, f.Text())
	}
}

// TestSumOfOpenLengthChecksItsEndOnce: in a tile, a sum of dynamic length adds up whole steps without a condition,
// and the last step with one.
func TestSumOfOpenLengthChecksItsEndOnce(t *testing.T) {
	in := ir.Flat("in", array.Float32, 64)
	sum, out := &ir.Buffer{Tensor: ir.Flat("sum", array.Float32, 1), Space: ir.Register}, &ir.Buffer{Tensor: ir.Flat("out", array.Float32, 1)}
	n, step, term := &expr.Var{Name: "n", Extent: 65}, &expr.Var{Name: "step", Extent: 16}, &expr.Var{Name: "term", Extent: 4}
	at := expr.AddE(expr.MulE(step, expr.I(4)), term)
	value := expr.Sel(expr.Bin(expr.Lt, at, n), in.At(at), expr.F(array.Float32, 0))
	add := &ir.Store{Buffer: sum, Index: expr.I(0), Value: expr.AddE(sum.Tensor.At(expr.I(0)), value)}
	steps := &ir.For{Var: step, Extent: 16, Kind: ir.Serial, Body: ir.Block{&ir.For{Var: term, Extent: 4, Kind: ir.Unrolled, Body: ir.Block{add}}}}
	steps.Range = &ir.Range{First: expr.I(0), End: expr.Bin(expr.FloorDiv, expr.AddE(n, expr.I(3)), expr.I(4)), Every: 1, Mean: 16}
	tile := &expr.Var{Name: "tile", Extent: 2}
	body := ir.Block{&ir.Alloc{Buffer: sum}, steps, &ir.Store{Buffer: out, Index: tile, Value: sum.Tensor.At(expr.I(0))}}
	f := pass.Partition(&ir.Func{Body: ir.Block{&ir.For{Var: tile, Extent: 2, Kind: ir.Serial, Body: body}}})
	var conditions []int
	versions := 0
	ir.Visit(f.Body, func(st ir.Stmt) {
		switch l := st.(type) {
		case *ir.If:
			versions++
		case *ir.For:
			if l.Extent == 16 {
				conditions = append(conditions, len(pass.Comparisons(l.Body)))
			}
		}
	})
	if !slices.Equal(conditions, []int{0, 1}) || versions > 0 {
		t.Errorf("the steps are loops with %v conditions in %d versions, want one with none before one with one:\n%s", conditions, versions, f.Text())
	}
}
