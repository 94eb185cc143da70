package machine_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// bytes lists the pairs of integer types that instructions multiply.
var bytes = [][2]array.DType{{array.Int8, array.Int8}, {array.Uint8, array.Uint8}, {array.Uint8, array.Int8}, {array.Int8, array.Uint8}}

// instructions returns those that compute, of all families.
func instructions() (list []*ir.Instruction) {
	halves := [2]array.DType{array.BFloat16, array.BFloat16}
	for _, lanes := range []int64{4, 8, 16, 32} {
		list = append(list, machine.Transpose(array.Float32, int(min(lanes, 16))), machine.Dot{DotTypes: machine.DotTypes{A: array.Int16, B: array.Int16}, Terms: 2, Lanes: lanes}.Instruction())
		for _, d := range append(bytes, halves) {
			list = append(list, machine.Dot{DotTypes: machine.DotTypes{A: d[0], B: d[1]}, Terms: 4, Lanes: lanes}.Instruction())
		}
	}
	for _, turned := range []bool{false, true} {
		list = append(list, machine.Squares(array.Int32, turned, false), machine.Squares(array.Float32, turned, true))
		for _, count := range []int64{1, 2, 4} {
			list = append(list, nvidia.LoadMatrices(count, turned))
		}
	}
	for _, d := range append(bytes, halves) {
		if turned, ok := machine.HasSquares(d[0], d[1], 32/d[0].Bytes()/4); ok {
			list = append(list, machine.SquareProduct(d[0], d[1], turned))
		}
	}
	for f := schedule.TF32; f <= schedule.TileI8; f++ {
		types := bytes
		switch f {
		case schedule.TileBF16:
			types = [][2]array.DType{halves}
		case schedule.TileF16:
			types = [][2]array.DType{{array.Float16, array.Float16}}
		case schedule.I8, schedule.WarpgroupI8, schedule.TileI8:
		default:
			types = [][2]array.DType{{}}
		}
		for _, d := range types {
			list = append(list, products(f, d[0], d[1])...)
		}
	}
	return list
}

// products returns the instructions of a format.
func products(f schedule.Format, a, b array.DType) (list []*ir.Instruction) {
	switch {
	case f.Tile():
		list = append(list, x86.TileZero(f.Sum()), x86.TileLoad(a), x86.TileStore(f.Sum()), x86.TileProduct(f, a, b))
	case f.Warpgroup():
		for _, columns := range []int64{16, 256} {
			list = append(list, nvidia.MultiplyShared(f, columns, nvidia.Factor{Type: a}, nvidia.Factor{Type: b, Turned: f.Packed() == 2}))
		}
	default:
		list = append(list, nvidia.Multiply(f, a, b))
	}
	return list
}

func TestMeaningsAgreeWithParameters(t *testing.T) {
	for _, i := range instructions() {
		if err := kerneltest.VerifyMeaning(i); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongMeaningsAreNamed checks meanings of a load of four numbers that each have one fault.
func TestWrongMeaningsAreNamed(t *testing.T) {
	lane := &expr.Var{Name: "lane", Extent: 4}
	load := ir.Instruction{Name: "load", Params: []ir.Param{{Name: "to", Use: ir.Write, Lanes: 4, Form: ir.Variable}, {Name: "from", Use: ir.Read, Form: ir.Address}}}
	meaning := func(to, from *expr.Tensor, index, value func(f []ir.Formal) expr.Expr) *ir.Meaning {
		return ir.NewMeaning(&load, func(f []ir.Formal) ir.Block {
			return ir.Nest(ir.Vector, ir.Block{&ir.Store{Buffer: f[0].Buffer, Index: index(f), Value: value(f)}}, lane)
		}, to, from)
	}
	four := func(name string) *expr.Tensor { return ir.Flat(name, array.Float32, 4) }
	at := func([]ir.Formal) expr.Expr { return lane }
	loaded := func(f []ir.Formal) expr.Expr { return f[1].At(lane) }
	for want, m := range map[string]*ir.Meaning{
		"":                              meaning(four("to"), four("from"), at, loaded),
		"has 2 elements in 8 bytes":     meaning(ir.Flat("to", array.Float32, 2), four("from"), at, loaded),
		"from has 3 elements":           meaning(four("to"), ir.Flat("from", array.Float32, 3), at, loaded),
		"operand from is read: false":   meaning(four("to"), four("from"), at, func([]ir.Formal) expr.Expr { return expr.Zero(array.Float32) }),
		"operand to is read: true":      meaning(four("to"), four("from"), at, func(f []ir.Formal) expr.Expr { return f[0].At(lane) }),
		"variable other is used where ": meaning(four("to"), four("from"), func([]ir.Formal) expr.Expr { return &expr.Var{Name: "other", Extent: 1} }, loaded),
		"to has 4 elements, and not":    meaning(four("to"), four("from"), func([]ir.Formal) expr.Expr { return expr.AddE(lane, expr.I(1)) }, loaded),
	} {
		i := load
		i.Meaning = m
		if err := kerneltest.VerifyMeaning(&i); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
