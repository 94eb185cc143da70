package codegen

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// meaningModes lists the targets that have instructions with a meaning.
var meaningModes = []mode{
	{name: "x86", target: "x86-64-v4", features: []string{"avx512vnni", "avx512vbmi", "avx512bf16"}, compiler: "clang-19", flags: []string{"-O1"}},
	{name: "arm64", target: "arm64", features: []string{"dotprod", "i8mm", "bf16"}, compiler: "clang-19", flags: squareMode.flags, emulator: "qemu-aarch64"},
	{name: "tiles", target: "granite-rapids", compiler: "clang-19", flags: []string{"-O1"}, model: tileModel},
}

// withMeaning returns the instructions of a mode.
func withMeaning(name string) (list []*ir.Instruction) {
	bytes := [][2]array.DType{{array.Int8, array.Int8}, {array.Uint8, array.Uint8}, {array.Uint8, array.Int8}, {array.Int8, array.Uint8}}
	bf16, f16 := [2]array.DType{array.BFloat16, array.BFloat16}, [2]array.DType{array.Float16, array.Float16}
	if name == "tiles" {
		for _, d := range bytes {
			list = append(list, x86.TileProduct(schedule.TileI8, d[0], d[1]))
		}
		return append(list, x86.TileProduct(schedule.TileBF16, bf16[0], bf16[1]), x86.TileProduct(schedule.TileF16, f16[0], f16[1]), x86.TileZero(array.Float32))
	}
	for _, lanes := range []int64{2, 4, 8, 16} {
		list = append(list, machine.Dot{DotTypes: machine.DotTypes{A: array.Int16, B: array.Int16}, Terms: 2, Lanes: lanes}.Instruction(),
			machine.Dot{DotTypes: machine.DotTypes{A: bf16[0], B: bf16[1]}, Terms: 2, Lanes: lanes}.Instruction(), machine.Transpose(array.Float32, int(lanes)))
		for _, d := range bytes {
			list = append(list, machine.Dot{DotTypes: machine.DotTypes{A: d[0], B: d[1]}, Terms: 4, Lanes: lanes}.Instruction())
		}
	}
	for _, d := range append(bytes, bf16) {
		turned, _ := machine.HasSquares(d[0], d[1], 8/d[0].Bytes())
		list = append(list, machine.SquareProduct(d[0], d[1], turned))
	}
	for _, turned := range []bool{false, true} {
		list = append(list, machine.Squares(array.Int32, turned, false), machine.Squares(array.Int32, turned, true))
	}
	return list
}

// rowElements is the distance between rows of operands in tests, and rows their number.
const (
	rowElements = 100
	rows        = 16
)

// compared is C code with two kernels and a comparison of their results on random operands.
type compared struct {
	unit *Unit
	code string
	n    int
}

// add adds kernels with the same arguments. Floats are small integers, so that no sum is rounded.
func (c *compared) add(name string, args, others []*ir.Buffer, body, other ir.Block) {
	var x, y []string
	code, same := "  {\n", "1"
	for k, b := range args {
		x, y = append(x, fmt.Sprintf("x%d", k)), append(y, fmt.Sprintf("y%d", k))
		same += fmt.Sprintf(" && !memcmp(x%[1]d, y%[1]d, sizeof x%[1]d)", k)
		code += fmt.Sprintf("    static %[1]s x%[2]d[%[3]d], y%[2]d[%[3]d]; fill_%[4]v(x%[2]d, %[3]d); memcpy(y%[2]d, x%[2]d, sizeof x%[2]d);\n",
			cprint.TypeOf(b.Tensor.DType).Scalar, k, b.Room(), b.Tensor.DType)
	}
	w := &expr.Workload{Outputs: make([]*expr.Tensor, len(args))}
	c.unit.functions(fmt.Sprintf("x%d", c.n), &ir.Func{Workload: w, Args: args, Body: body}, "")
	c.unit.functions(fmt.Sprintf("y%d", c.n), &ir.Func{Workload: w, Args: others, Body: other}, "")
	c.code += code + fmt.Sprintf("    x%[1]d_run(0, (void *[]){%[2]s}, 0, 0); y%[1]d_run(0, (void *[]){%[3]s}, 0, 0);\n    if (!(%[4]s)) printf(\"%[5]s\\n\");\n  }\n",
		c.n, strings.Join(x, ", "), strings.Join(y, ", "), same, name)
	c.n++
}

// run compares the kernels in a mode.
func (c *compared) run(t *testing.T, m mode) {
	t.Helper()
	if m.model == "" && !runsHere(t, m.description(t)) {
		t.Skip("this machine lacks some of ", m.description(t).CPU.Features)
	}
	program, err := m.compile(t, m.model+c.unit.Source()+fills+"int main(void) {\n  for (int run = 0; run < 10; run++) {\n"+c.code+"  }\n  return 0;\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	command := append(strings.Fields(m.emulator), program)
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v, other results of %s", err, out)
	}
}

// copied copies all elements of a buffer.
func copied(to, from *ir.Buffer) ir.Stmt {
	lane := &expr.Var{Name: "lane", Extent: to.Elements()}
	return ir.Nest(ir.Vector, ir.Block{&ir.Store{Buffer: to, Index: lane, Value: from.Tensor.At(lane)}}, lane)[0]
}

// meaning adds an instruction and its meaning, as kernels with the operands in memory.
func (c *compared) meaning(i *ir.Instruction) {
	var means, does, after ir.Block
	var formals, memory []*ir.Buffer
	var args []ir.Arg
	for k, f := range i.Meaning.Operands {
		t := f.Buffer.Tensor
		in := &ir.Buffer{Tensor: ir.Flat(t.Name, t.DType, t.Shape[0]), Index: k}
		arg := ir.At(in, expr.I(0))
		formal := &ir.Buffer{Tensor: t, Index: k}
		if f.Row != nil {
			formal.Spare, arg.Stride = rows*rowElements, rowElements
			means = append(means, &ir.Let{Var: f.Row, Value: expr.I(rowElements)})
		}
		formals = append(formals, formal)
		switch i.Params[k].In {
		case ir.Register:
			register := ir.NewRegister(t.Name, t.DType, t.Shape[0])
			does, after = append(does, &ir.Alloc{Buffer: register}, copied(register, in)), append(after, copied(in, register))
			arg = ir.All(register)
		case ir.Tile:
			tile := ir.NewTile(k, t.Name, t.DType)
			arg.Stride = schedule.TileRowBytes / t.DType.Bytes()
			does, after = append(does, ir.Exec(x86.TileLoad(t.DType), ir.All(tile), arg)), append(after, ir.Exec(x86.TileStore(t.DType), ir.All(tile), arg))
			arg = ir.All(tile)
		}
		memory, args = append(memory, in), append(args, arg)
	}
	loops := ir.MapLoops(&ir.Func{Body: i.Meaning.Body}, func(n *ir.For) ir.Stmt {
		loop := n.With(n.Body)
		loop.Kind = ir.Serial
		return loop
	}).Body
	ir.Visit(loops, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok {
			a.Buffer.Space = ir.Stack
		}
	})
	c.add(i.Name, formals, memory, append(means, loops...), append(append(does, ir.Exec(i, args...)), after...))
}

// fills defines functions that fill an array with random numbers.
const fills = `#include <stdio.h>
#include <string.h>
static uint32_t drawn(void) { static uint64_t state = 1; state = state * 6364136223846793005u + 1442695040888963407u; return (uint32_t)(state >> 33); }
#define FILL(name, type, value) static void fill_##name(type *x, int n) { for (int k = 0; k < n; k++) x[k] = value; }
static uint16_t half_of(float x) { uint32_t u; memcpy(&u, &x, 4); return (uint16_t)(u >> 16); }
static float small(void) { return (float)(drawn() % 17) - 8; }
FILL(i8, int8_t, (int8_t)drawn()) FILL(u8, uint8_t, (uint8_t)drawn()) FILL(i16, int16_t, (int16_t)drawn()) FILL(i32, int32_t, (int32_t)drawn())
FILL(f32, float, small()) FILL(bf16, tilth_bfloat16, half_of(small())) FILL(f16, _Float16, (_Float16)small())
`

// TestInstructionsComputeTheirMeaning runs each instruction on random operands: on this machine, in an emulator, or as
// a model of tiles.
func TestInstructionsComputeTheirMeaning(t *testing.T) {
	for _, m := range meaningModes {
		t.Run(m.name, func(t *testing.T) {
			c := &compared{unit: NewUnit(m.description(t))}
			for _, i := range withMeaning(m.name) {
				c.meaning(i)
			}
			c.run(t, m)
		})
	}
}

// TestSquaresAreTwoDotProducts: rows of sums become squares, to which the products with two rows are added, and rows
// again.
func TestSquaresAreTwoDotProducts(t *testing.T) {
	m := meaningModes[1]
	c := &compared{unit: NewUnit(m.description(t))}
	for _, p := range squareProducts {
		turned, _ := machine.HasSquares(p.data, p.weights, 8/p.data.Bytes())
		sums := array.Int32
		if p.data.IsFloat() {
			sums = array.Float32
		}
		terms := 8 / p.data.Bytes()
		var args []*ir.Buffer
		for k, x := range []*expr.Tensor{ir.Flat("first", sums, 4), ir.Flat("second", sums, 4), ir.Flat("one", p.data, terms), ir.Flat("other", p.data, terms), ir.Flat("columns", p.weights, 4*terms)} {
			args = append(args, &ir.Buffer{Tensor: x, Index: k})
		}
		var before, after ir.Block
		var all []ir.Arg
		for k, b := range args {
			d, lane := b.Tensor.DType, &expr.Var{Name: "lane", Extent: 4 * terms}
			switch register := ir.NewRegister(b.Tensor.Name, d, 4*terms); k {
			case 0, 1:
				register = ir.NewRegister(b.Tensor.Name, d, 4)
				before, after = append(before, &ir.Alloc{Buffer: register}, copied(register, b)), append(after, copied(b, register))
				all = append(all, ir.All(register))
			case 2, 3:
				before = append(before, &ir.Define{Buffer: register, Lane: lane, Value: &ir.Spread{Tensor: b.Tensor, First: expr.I(0), Elements: terms}})
				all = append(all, ir.All(register))
			default:
				before = append(before, &ir.Define{Buffer: register, Lane: lane, Value: b.Tensor.At(lane)})
				all = append(all, ir.All(register))
			}
		}
		dot := machine.Dot{DotTypes: machine.DotTypes{A: p.data, B: p.weights}, Terms: terms, Lanes: 4}.Instruction()
		dots := ir.Block{ir.Exec(dot, all[0], all[2], all[4]), ir.Exec(dot, all[1], all[3], all[4])}
		squares := ir.Block{ir.Exec(machine.Squares(sums, turned, false), all[:2]...), ir.Exec(machine.SquareProduct(p.data, p.weights, turned), all...),
			ir.Exec(machine.Squares(sums, turned, true), all[:2]...)}
		c.add(fmt.Sprint(p.data, " by ", p.weights), args, args, slices.Concat(before, dots, after), slices.Concat(before, squares, after))
	}
	c.run(t, m)
}
