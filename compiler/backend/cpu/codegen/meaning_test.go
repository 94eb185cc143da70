package codegen

import (
	"fmt"
	"os/exec"
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

// kernels prints an instruction and its meaning as functions of its operands in memory, and returns C that compares
// their results on random operands. Floats are small integers, so that no sum is rounded.
func kernels(u *Unit, n int, i *ir.Instruction) string {
	var means, does, after ir.Block
	var inputs, outputs []*ir.Buffer
	var args []ir.Arg
	code := "  {\n"
	for k, f := range i.Meaning.Operands {
		t, p := f.Buffer.Tensor, i.Params[k]
		of := func(t *expr.Tensor) *ir.Buffer { return &ir.Buffer{Tensor: t, Index: k} }
		elements, memory := t.Shape[0], of(ir.Flat(t.Name, t.DType, t.Shape[0]))
		if inputs = append(inputs, of(t)); f.Row != nil {
			elements = rows * rowElements
			means = append(means, &ir.Let{Var: f.Row, Value: expr.I(rowElements)})
		}
		outputs = append(outputs, memory)
		arg := ir.At(memory, expr.I(0))
		if f.Row != nil {
			arg.Stride = rowElements
		}
		lane := &expr.Var{Name: "lane", Extent: elements}
		copied := func(to, from *ir.Buffer) ir.Stmt {
			return &ir.For{Var: lane, Extent: elements, Kind: ir.Vector, Body: ir.Block{&ir.Store{Buffer: to, Index: lane, Value: from.Tensor.At(lane)}}}
		}
		switch p.In {
		case ir.Register:
			register := ir.NewRegister(t.Name, t.DType, elements)
			does = append(does, &ir.Alloc{Buffer: register}, copied(register, memory))
			after = append(after, copied(memory, register))
			arg = ir.All(register)
		case ir.Tile:
			tile := ir.NewTile(k, t.Name, t.DType)
			arg.Stride = schedule.TileRowBytes / t.DType.Bytes()
			does = append(does, ir.Exec(x86.TileLoad(t.DType), ir.All(tile), arg))
			after = append(after, ir.Exec(x86.TileStore(t.DType), ir.All(tile), arg))
			arg = ir.All(tile)
		}
		args = append(args, arg)
		scalar := cprint.TypeOf(t.DType).Scalar
		code += fmt.Sprintf("    static %[1]s x%[2]d[%[3]d], y%[2]d[%[3]d]; fill_%[4]v(x%[2]d, %[3]d); memcpy(y%[2]d, x%[2]d, sizeof x%[2]d);\n", scalar, k, elements, t.DType)
	}
	does = append(append(does, ir.Exec(i, args...)), after...)
	means = append(means, ir.MapLoops(&ir.Func{Body: i.Meaning.Body}, func(n *ir.For) ir.Stmt {
		loop := n.With(n.Body)
		loop.Kind = ir.Serial
		return loop
	}).Body...)
	ir.Visit(means, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok {
			a.Buffer.Space = ir.Stack
		}
	})
	w := &expr.Workload{Outputs: make([]*expr.Tensor, len(args))}
	u.functions(fmt.Sprintf("means%d", n), &ir.Func{Workload: w, Args: inputs, Body: means}, "")
	u.functions(fmt.Sprintf("does%d", n), &ir.Func{Workload: w, Args: outputs, Body: does}, "")
	var x, y []string
	same := "1"
	for k := range args {
		x, y = append(x, fmt.Sprintf("x%d", k)), append(y, fmt.Sprintf("y%d", k))
		same += fmt.Sprintf(" && !memcmp(x%[1]d, y%[1]d, sizeof x%[1]d)", k)
	}
	return code + fmt.Sprintf("    means%[1]d_run(0, (void *[]){%[2]s}, 0, 0); does%[1]d_run(0, (void *[]){%[3]s}, 0, 0);\n    if (!(%[4]s)) printf(\"%[5]s\\n\");\n  }\n",
		n, strings.Join(x, ", "), strings.Join(y, ", "), same, i.Name)
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
			d := m.description(t)
			if m.model == "" && !runsHere(t, d) {
				t.Skip("this machine lacks some of ", d.CPU.Features)
			}
			u, comparisons := NewUnit(d), ""
			for n, i := range withMeaning(m.name) {
				comparisons += kernels(u, n, i)
			}
			program, err := m.compile(t, m.model+u.Source()+fills+"int main(void) {\n  for (int run = 0; run < 10; run++) {\n"+comparisons+"  }\n  return 0;\n}\n")
			if err != nil {
				t.Fatal(err)
			}
			command := append(strings.Fields(m.emulator), program)
			out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%v, other results of %s", err, out)
			}
		})
	}
}
