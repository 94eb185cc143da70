package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

var (
	dot    = machine.Dot{DotTypes: machine.DotTypes{A: array.Uint8, B: array.Int8}, Terms: 4, Lanes: 8}.Instruction()
	number = func(name string, extent int64) *expr.Var { return &expr.Var{Name: name, Extent: extent} }
	times  = func(e expr.Expr, n int64) expr.Expr { return expr.MulE(e, expr.I(n)) }
)

// changed returns an instruction that computes something else.
func changed(i *ir.Instruction, change func(expr.Expr) expr.Expr) *ir.Instruction {
	c, m := *i, *i.Meaning
	m.Body = ir.Rewrite(m.Body, func(e expr.Expr) expr.Expr { return expr.Rewrite(e, change) })
	c.Meaning = &m
	return &c
}

// step returns a loop over the terms of eight neighbouring sums, with an index for each lane and term of both factors.
func step(terms, lanes int64, a, b func(lane, term expr.Expr) expr.Expr) ir.Block {
	sums := &ir.Buffer{Tensor: ir.Flat("sums", array.Int32, 64)}
	lane, term := number("lane", lanes), number("term", terms)
	wide := func(t *expr.Tensor, index expr.Expr) expr.Expr { return expr.To(array.Int32, t.At(index)) }
	product := expr.MulE(wide(ir.Flat("a", array.Uint8, 64), a(lane, term)), wide(ir.Flat("b", array.Int8, 64), b(lane, term)))
	return ir.Nest(ir.Serial, ir.Nest(ir.Vector, ir.Block{ir.Add(sums, expr.AddE(lane, expr.I(16)), product)}, lane), term)
}

func perLane(lane, term expr.Expr) expr.Expr { return expr.AddE(times(lane, 4), term) }
func forAll(_, term expr.Expr) expr.Expr     { return expr.AddE(term, expr.I(12)) }

// TestLoopsAreTensorizedWhereTheyEqualTheMeaning, whatever the order of factors, and with operands that are the same
// for all lanes.
func TestLoopsAreTensorizedWhereTheyEqualTheMeaning(t *testing.T) {
	for what, b := range map[string]ir.Block{
		"elements for each lane": step(4, 8, perLane, perLane),
		"elements for all lanes": step(4, 8, forAll, perLane),
	} {
		if args, err := pass.Tensorized(b, dot, nil); err != nil || args[0].Tensor.Name != "sums" || !expr.Same(args[0].Index, expr.I(16)) || args[1].Tensor.Name != "a" {
			t.Errorf("%s: %v, %v", what, args, err)
		}
	}
}

// TestOtherLoopsAreNotTensorized checks that the reason names the difference.
func TestOtherLoopsAreNotTensorized(t *testing.T) {
	same := step(4, 8, perLane, perLane)
	tile := x86.TileLoad(array.Int8)
	for what, c := range map[string]struct {
		b    ir.Block
		i    *ir.Instruction
		want string
	}{
		"fewer terms":     {step(2, 8, perLane, perLane), dot, "no loops match"},
		"fewer lanes":     {step(4, 4, perLane, perLane), dot, "no loops match"},
		"another copy":    {same, tile, "values differ"},
		"a rearrangement": {append(same, append(same, append(same, same...)...)...), machine.Squares(array.Int32, false, false), "no nest of loops"},
		"an instruction":  {ir.Block{ir.Exec(machine.Fence)}, dot, "no nest of loops"},
		"two statements":  {append(same, same...), dot, "not have a meaning of 2 statements"},
		"other types":     {same, machine.Dot{DotTypes: machine.DotTypes{A: array.Int8, B: array.Int8}, Terms: 4, Lanes: 8}.Instruction(), "values differ"},
		"a meaning with every other sum": {same, changed(dot, func(e expr.Expr) expr.Expr {
			if l, ok := e.(*expr.Load); ok && l.Tensor.Name == "sums" {
				return l.Tensor.At(times(l.Index[0], 2))
			}
			return e
		}), "operand acc: elements are 1 apart along lane, not 2"},
		"a meaning with the maximum": {same, changed(dot, func(e expr.Expr) expr.Expr {
			if n, ok := e.(*expr.Binary); ok && n.DType() == array.Int32 && n.Op == expr.Add {
				return expr.MaxE(n.A, n.B)
			}
			return e
		}), "values differ"},
		"a meaning with all terms of a lane alike": {same, changed(dot, func(e expr.Expr) expr.Expr {
			if l, ok := e.(*expr.Load); ok && l.Tensor.Name == "a" {
				return l.Tensor.At(expr.Bin(expr.FloorDiv, l.Index[0], expr.I(4)))
			}
			return e
		}), "operand a: an element depends on term"},
	} {
		if _, err := pass.Tensorized(c.b, c.i, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// TestRowsAreFoundAtTheirStride: a copy to a tile in one loop over its elements is a load of rows.
func TestRowsAreFoundAtTheirStride(t *testing.T) {
	tile, from := ir.NewTile(0, "tile", array.Int8), ir.Flat("from", array.Int8, 4096)
	place := number("place", tile.Elements())
	index := expr.AddE(times(expr.Bin(expr.FloorDiv, place, expr.I(64)), 100), expr.AddE(expr.Bin(expr.FloorMod, place, expr.I(64)), expr.I(7)))
	store := func(value expr.Expr) ir.Block {
		return ir.Nest(ir.Serial, ir.Block{&ir.Store{Buffer: tile, Index: place, Value: value}}, place)
	}
	load := func(d int64) ir.Block { return store(from.At(times(index, d))) }
	in := ir.Allocated{tile.Tensor: tile}
	args, err := pass.Tensorized(load(1), x86.TileLoad(array.Int8), in)
	if err != nil || args[1].Stride != 100 || !expr.Same(args[1].Index, expr.I(7)) {
		t.Errorf("%v, %v", args, err)
	}
	if _, err := pass.Tensorized(load(2), x86.TileLoad(array.Int8), in); err == nil || !strings.Contains(err.Error(), "2 apart") {
		t.Errorf("elements that are no neighbours: %v", err)
	}
	if _, err := pass.Tensorized(store(nvidia.Shuffle(from.At(index), 1)), x86.TileLoad(array.Int8), in); err == nil {
		t.Error("elements of another thread are loaded as those of this one")
	}
}

// TestProductsOfTilesMayBeSmallerThanTiles, and may have more rows: terms may not.
func TestProductsOfTilesMayBeSmallerThanTiles(t *testing.T) {
	product := x86.TileProduct(schedule.TileI8, array.Uint8, array.Int8)
	loops := func(rows, columns, terms int64) ir.Block {
		m, n, k := number("m", rows), number("n", columns), number("k", terms)
		wide := func(t *expr.Tensor, index expr.Expr) expr.Expr { return expr.To(array.Int32, t.At(index)) }
		a, b := ir.Flat("a", array.Uint8, 4096), ir.Flat("b", array.Int8, 4096)
		term := expr.MulE(wide(a, expr.AddE(times(m, 64), k)), wide(b, expr.AddE(times(k, columns), n)))
		sums := &ir.Buffer{Tensor: ir.Flat("sums", array.Int32, rows*columns), Space: ir.Scratch}
		return ir.Nest(ir.Serial, ir.Block{ir.Add(sums, expr.AddE(times(m, columns), n), term)}, k, m, n)
	}
	for _, c := range []struct {
		rows, columns, terms int64
		ok                   bool
	}{{16, 16, 64, true}, {7, 5, 64, true}, {32, 20, 64, true}, {16, 16, 32, false}, {16, 16, 96, false}} {
		if err := pass.Matches(loops(c.rows, c.columns, c.terms), product); (err == nil) != c.ok {
			t.Errorf("%d by %d sums of %d terms: %v", c.rows, c.columns, c.terms, err)
		}
	}
}

// TestOperandsAreInTheirMemory, the second one of a sum, too.
func TestOperandsAreInTheirMemory(t *testing.T) {
	flat := func(name string) *expr.Tensor { return ir.Flat(name, array.Float32, 8) }
	sum := func(to, a, b *expr.Tensor) ir.Block {
		lane := number("lane", 8)
		return ir.Nest(ir.Vector, ir.Block{&ir.Store{Buffer: &ir.Buffer{Tensor: to}, Index: lane, Value: expr.AddE(a.At(lane), b.At(lane))}}, lane)
	}
	add := &ir.Instruction{Name: "add", Params: []ir.Param{
		{Name: "to", Use: ir.Write, Form: ir.Address}, {Name: "a", Use: ir.Read, Form: ir.Address}, {Name: "b", Use: ir.Read, In: ir.Shared, Form: ir.Address},
	}}
	add.Meaning = ir.NewMeaning(add, func(f []ir.Formal) ir.Block { return sum(f[0].Buffer.Tensor, f[1].Buffer.Tensor, f[2].Buffer.Tensor) }, flat("to"), flat("a"), flat("b"))
	x, y := flat("x"), flat("y")
	b := sum(flat("z"), x, y)
	if _, err := pass.Tensorized(b, add, nil); err == nil || !strings.Contains(err.Error(), "b lies in") {
		t.Errorf("an operand in global memory: %v", err)
	}
	if args, err := pass.Tensorized(b, add, ir.Allocated{y: {Tensor: y, Space: ir.Shared}}); err != nil || args[1].Tensor != x || args[2].Tensor != y {
		t.Errorf("%v, %v", args, err)
	}
}
