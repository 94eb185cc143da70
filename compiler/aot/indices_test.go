package aot

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// indexed imports a model whose inputs with names that start with i are indices, and rows of x are 1 to 6 if open.
func indexed(t *testing.T, m *onnx.Model, o frontend.Options) *program.Program {
	t.Helper()
	for _, in := range m.Graph.Inputs {
		if in.Name[0] == 'i' {
			in.DType = array.Int64
		} else if o.Open != nil {
			in.Shape[0] = onnx.Dim{Value: -1, Param: "rows"}
		}
	}
	o.Verify = true
	p, err := frontend.Import(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func list(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }

func branch(name string, s modeltest.Model, output string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.Output(output).Graph}
}

func TestIndicesOutOfRangeAreErrors(t *testing.T) {
	open := frontend.Options{Open: map[string]frontend.Bounds{"rows": {Min: 1, Max: 6, Caps: []int64{1}}}}
	start := func(indices ...int64) modeltest.Model {
		return modeltest.New().Input("x", 5, 3).Input("i", indices...)
	}
	for name, test := range map[string]struct {
		model   *onnx.Model
		options frontend.Options
		shape   []int64
		// fit are indices in range. Each of unfit has one that is not, and the end of the error.
		fit   []int64
		unfit map[string][]int64
	}{
		"Gather": {start(3).Node("y = Gather x i").Output("y"), frontend.Options{}, []int64{3}, []int64{-5, 0, 4},
			map[string][]int64{"the index 5, which is outside of -5..4": {0, 5, 4}, "the index -6, which is outside of -5..4": {0, 1, -6}}},
		"another axis, after moves": {start(2, 2).Known("axes", array.FromInt64([]int64{0})).Node("narrow = Cast i", modeltest.Int("to", int64(onnx.DataType(array.Int32)))).
			Node("transposed = Transpose narrow").Node("more = Unsqueeze transposed axes").Node("y = Gather x more", modeltest.Int("axis", 1)).Output("y"),
			frontend.Options{}, []int64{2, 2}, []int64{-3, 0, 2, 1}, map[string][]int64{"the index 3, which is outside of -3..2": {0, 1, 2, 3}}},
		"the smaller of two axes": {start(1).Node("rows = Gather x i").Node("columns = Gather x i", modeltest.Int("axis", 1)).Output("rows", "columns"),
			frontend.Options{}, []int64{1}, []int64{2}, map[string][]int64{"the index 3, which is outside of -3..2": {3}}},
		"GatherElements": {start(5, 3).Node("y = GatherElements x i", modeltest.Int("axis", 1)).Output("y"), frontend.Options{}, []int64{5, 3},
			make([]int64, 15), map[string][]int64{"the index 7, which is outside of -3..2": {0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0}}},
		"tuples": {start(2, 2).Node("y = GatherND x i").Output("y"), frontend.Options{}, []int64{2, 2}, []int64{4, 2, -5, -3},
			map[string][]int64{"the index 3, which is outside of -3..2": {4, 3, 0, 0}, "the index 5, which is outside of -5..4": {0, 0, 5, 0}}},
		"joined tuples": {modeltest.New().Input("x", 5, 3).Input("i", 2, 1).Known("column", array.FromInt64([]int64{0, 2}, 2, 1)).
			Node("tuples = Concat column i", modeltest.Int("axis", -1)).Node("y = GatherND x tuples").Output("y"), frontend.Options{}, []int64{2, 1},
			[]int64{-3, 2}, map[string][]int64{"the index 3, which is outside of -3..2": {0, 3}}},
		"ScatterElements": {start(1, 3).Constant("updates", 1, 3).Node("y = ScatterElements x i updates").Output("y"), frontend.Options{}, []int64{1, 3},
			[]int64{0, 4, -5}, map[string][]int64{"the index 5, which is outside of -5..4": {0, 5, 0}}},
		"ScatterND": {start(1, 1).Constant("updates", 1, 3).Node("y = ScatterND x i updates").Output("y"), frontend.Options{}, []int64{1, 1},
			[]int64{-1}, map[string][]int64{"the index -9, which is outside of -5..4": {-9}}},
		"a branch": {start(1).Node("sum = ReduceSum x", modeltest.Int("keepdims", 0)).Known("zero", array.New(array.Float32)).Node("taken = Less sum zero").
			Node("y = If taken", branch("then_branch", modeltest.New().Node("row = Gather x i"), "row"),
				branch("else_branch", modeltest.New().Known("axes", array.FromInt64([]int64{0})).Node("m = ReduceMax x", modeltest.Ints("axes", 0)), "m")).Output("y"),
			frontend.Options{}, []int64{1}, []int64{9}, nil},
		"computed": {start(1).Known("one", array.FromInt64([]int64{1})).Node("next = Add i one").Node("y = Gather x next").Output("y"),
			frontend.Options{}, []int64{1}, []int64{9}, nil},
		"a part, backwards, in steps": {start(7).Known("from", list(-2)).Known("to", list(0)).Known("zero", list(0)).
			Known("steps", list(-2)).Node("part = Slice i from to zero steps").Node("y = Gather x part").Output("y"), frontend.Options{}, []int64{7},
			[]int64{9, 4, 9, 0, 9, -5, 9}, map[string][]int64{"the index 5, which is outside of -5..4": {9, 0, 9, 0, 9, 5, 9}, "the index -6, which is outside of -5..4": {9, -6, 9, 0, 9, 0, 9}}},
		"parts of an axis": {start(2, 3).Known("lengths", list(1, 2)).Node("a b = Split i lengths", modeltest.Int("axis", 1)).
			Node("rows = Gather x a").Node("columns = Gather x b", modeltest.Int("axis", 1)).Output("rows", "columns"), frontend.Options{}, []int64{2, 3},
			[]int64{4, 2, -3, -5, 0, 1}, map[string][]int64{"the index 3, which is outside of -3..2": {4, 0, 0, 4, 0, 3}, "the index 5, which is outside of -5..4": {0, 0, 0, 5, 0, 0}}},
		"columns that a constant selects": {start(2, 4).Known("odd", list(3, 1)).Node("columns = Gather i odd", modeltest.Int("axis", 1)).
			Node("y = Gather x columns").Output("y"), frontend.Options{}, []int64{2, 4}, []int64{9, 0, 9, 4, 9, -5, 9, 0},
			map[string][]int64{"the index 5, which is outside of -5..4": {9, 0, 9, 5, 9, 0, 9, 0}, "the index 7, which is outside of -5..4": {9, 0, 9, 0, 9, 7, 9, 0}}},
		"tuples from columns": {start(2, 3).Node("turned = Transpose i").Node("y = GatherND x turned").Output("y"), frontend.Options{}, []int64{2, 3},
			[]int64{4, 0, -5, 2, 0, -3}, map[string][]int64{"the index 3, which is outside of -3..2": {4, 0, 0, 0, 3, 0}, "the index 5, which is outside of -5..4": {0, 0, 5, 0, 0, 0}}},
		"padded by a constant": {start(3).Known("pads", list(2, -1)).Node("padded = Pad i pads").Node("y = Gather x padded").Output("y"),
			frontend.Options{}, []int64{3}, []int64{4, 0, 9}, map[string][]int64{"the index 5, which is outside of -5..4": {0, 5, 9}}},
		"a part for an open axis": {start(3).Known("from", list(1)).Known("to", list(2)).
			Node("part = Slice i from to").Node("y = Gather x part").Output("y"), open, []int64{3}, []int64{9, 4, 9},
			map[string][]int64{"the index 5, which is outside of -5..4": {9, 5, 9}}},
		"unchecked": {start(1).Node("y = Gather x i").Output("y"), frontend.Options{UncheckedIndices: true}, []int64{1}, []int64{9}, nil},
		"an open axis": {start(1).Node("y = Gather x i").Output("y"), open, []int64{1}, []int64{4},
			map[string][]int64{"the index 5, which is outside of -5..4": {5}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := indexed(t, test.model, test.options)
			m := opened(t, plain(t, p).Output)
			inputs := func(i []int64) map[string]*array.Array {
				return map[string]*array.Array{"x": sample(1, 5, 3), "i": array.FromInt64(i, test.shape...)}
			}
			runEvaluated(t, p, m, inputs(test.fit))
			for want, i := range test.unfit {
				_, err := m.Run(inputs(i))
				if want := `running the model: input "i" has ` + want; err == nil || err.Error() != want {
					t.Errorf("%v: error %v, want %s", i, err, want)
				}
				if _, err := evaluate.Program(p, inputs(i)); err == nil || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%v: evaluated with error %v, want %s", i, err, want)
				}
				if _, err := m.Profile(); err == nil {
					t.Errorf("%v: profiled", i)
				}
			}
			runEvaluated(t, p, m, inputs(test.fit))
		})
	}
}

// TestIndicesBeyondTheExtentsOfARunAreNotRead: the memory of an input has the indices of longer runs.
func TestIndicesBeyondTheExtentsOfARunAreNotRead(t *testing.T) {
	m := modeltest.New().Constant("table", 4, 2).Input("i", 2, 6).Node("y = Gather table i").Output("y")
	m.Graph.Inputs[0].DType, m.Graph.Inputs[0].Shape[1] = array.Int64, onnx.Dim{Value: -1, Param: "length"}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"length": {Min: 1, Max: 6, Caps: []int64{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	model := opened(t, plain(t, p).Output)
	if _, err := model.Run(map[string]*array.Array{"i": array.FromInt64([]int64{0, 0, 0, 9, 0, 0, 0, 0, 0, 9, 9, 9}, 2, 6)}); err == nil {
		t.Error("an index of 9 was accepted")
	}
	for _, i := range [][]int64{{0, 1, 2, 3}, {3}} {
		length := int64(len(i))
		runEvaluated(t, p, model, map[string]*array.Array{"i": array.FromInt64(append(i, i...), 2, length)})
	}
}

// TestPartsOfOpenIndicesAreChecked: each run checks the part that its own extents select.
func TestPartsOfOpenIndicesAreChecked(t *testing.T) {
	m := modeltest.New().Constant("table", 4, 2).Input("i", 2, 8).Known("from", list(1, 1)).Known("to", list(math.MaxInt64, -1)).
		Node("part = Slice i from to").Node("turned = Transpose part").Node("y = Gather table turned").Output("y")
	m.Graph.Inputs[0].DType, m.Graph.Inputs[0].Shape[1] = array.Int64, onnx.Dim{Value: -1, Param: "length"}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"length": {Min: 3, Max: 8, Caps: []int64{3}}}})
	if err != nil {
		t.Fatal(err)
	}
	model := opened(t, plain(t, p).Output)
	for length := int64(8); length >= 3; length-- {
		for at := range 2 * length {
			i := array.New(array.Int64, 2, length)
			i.SetInt(at, 4)
			inputs := map[string]*array.Array{"i": i}
			_, err := model.Run(inputs)
			_, wrong := evaluate.Program(p, inputs)
			if selected := at > length && at < 2*length-1; (err != nil) != selected || (wrong != nil) != selected {
				t.Errorf("element %d of %v is out of range: error %v, evaluated with error %v", at, i.Shape, err, wrong)
			}
		}
	}
}

// TestIndicesWithoutElementsAreNotScanned: the input has no element at any length.
func TestIndicesWithoutElementsAreNotScanned(t *testing.T) {
	m := modeltest.New().Constant("table", 4, 2).Input("i", 0, 6).Node("y = Gather table i").Output("y")
	m.Graph.Inputs[0].DType, m.Graph.Inputs[0].Shape[1] = array.Int64, onnx.Dim{Value: -1, Param: "length"}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"length": {Min: 1, Max: 6, Caps: []int64{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Checks) > 0 {
		t.Errorf("checks %v", p.Checks)
	}
}

// TestIndicesJoinedWithThemselvesAreCheckedOnce bounds the work of an import: the indices double in each of many
// nodes.
func TestIndicesJoinedWithThemselvesAreCheckedOnce(t *testing.T) {
	s := modeltest.New().Constant("table", 4, 2).Input("i", 1)
	s.Graph.Inputs[0].DType = array.Int64
	name := "i"
	for k := range 20 {
		next := fmt.Sprintf("i%d", k)
		s = s.Node(fmt.Sprintf("%s = Concat %s %s", next, name, name), modeltest.Int("axis", 0))
		name = next
	}
	p, err := frontend.Import(s.Node("y = Gather table "+name).Output("y"), frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Checks) != 1 {
		t.Errorf("%d checks, want 1", len(p.Checks))
	}
}

// TestIndicesOfEachType checks the scans of all types of inputs that can become indices.
func TestIndicesOfEachType(t *testing.T) {
	s := modeltest.New().Constant("table", 100, 1)
	inputs := map[string]*array.Array{}
	var outputs []string
	for _, d := range []array.DType{
		array.Float32, array.Float64, array.Int8, array.Int16, array.Int32, array.Int64, array.Uint8, array.Uint16, array.Uint32, array.Uint64,
	} {
		name := "of_" + d.String()
		s = s.Input(name, 40).Node("i_"+name+" = Cast "+name, modeltest.Int("to", int64(onnx.DataType(array.Int64)))).Node("y_" + name + " = Gather table i_" + name)
		s.Graph.Inputs[len(s.Graph.Inputs)-1].DType = d
		inputs[name] = array.New(d, 40)
		inputs[name].SetInt(3, 99)
		outputs = append(outputs, "y_"+name)
	}
	p, err := frontend.Import(s.Output(outputs...), frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	m := opened(t, plain(t, p).Output)
	runEvaluated(t, p, m, inputs)
	for name := range inputs {
		inputs[name].SetInt(39, 100)
		want := fmt.Sprintf("running the model: input %q has the index 100, which is outside of -100..99", name)
		if _, err := m.Run(inputs); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		inputs[name].SetInt(39, 0)
	}
}

func TestIndicesOutOfRangeUnderAnEmulatorAndOnADevice(t *testing.T) {
	p := indexed(t, modeltest.New().Input("x", 5, 3).Input("i", 2).Node("y = Gather x i").Output("y"), frontend.Options{})
	p.Name = "indexed"
	const want = `input "i" has the index 5, which is outside of -5..4`
	inputs := map[string]*array.Array{"x": sample(1, 5, 3), "i": array.FromInt64([]int64{0, 5}, 2)}
	o := plain(t, p)
	o.Emulator = []string{"env"}
	_, err := RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{inputs}, o, func([]program.Task) ([]Choice, error) { return o.Choices, nil })
	if err == nil || !strings.HasSuffix(err.Error(), `input "0/i" has the index 5, which is outside of -5..4`) {
		t.Errorf("under an emulator: error %v, want %s", err, want)
	}
	dir, _ := onDevice(t, p)
	out, err := run(t, userCommand(dir), append(inputs["x"].Data, inputs["i"].Data...))
	if err == nil || string(out) != want+"\n" {
		t.Errorf("on a device: %q with error %v, want %s", out, err, want)
	}
}

// TestSourceChecksIndices runs C source with each index out of range in turn.
func TestSourceChecksIndices(t *testing.T) {
	m := modeltest.New().Constant("table", 4, 2).Input("i", 2, 5).Known("from", list(1)).Known("to", list(5)).Known("axis", list(1)).Known("steps", list(2)).
		Node("part = Slice i from to axis steps").Node("turned = Transpose part").Node("y = Gather table turned").Output("y")
	m.Graph.Inputs[0].DType = array.Int64
	_, machine := toolchaintest.Native(t, 1)
	p := imported(t, m)
	o := sourceOptions(t, p, machine)
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	dir := unpackSource(t, o.Output)
	const main = `#include <stdio.h>
#include "net.h"
int main(void) {
  for (int k = 0; k < NET_INPUT_0_ELEMENTS; k++) {
    net_input_0()[k] = k % 2 ? 4 : -5;
    putchar('0' + net_run());
    net_input_0()[k] = 0;
  }
  return 0;
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", append(machine.GCCFlags(), "-I.", "-o", "net", "main.c", "net.c", "net_kernels.c", "net_weights.c", "-lm")...)
	if got, want := string(command(t, dir, "./net")), "0101001010"; got != want {
		t.Errorf("with each element of %v out of range, runs return %s, want %s", []int64{2, 5}, got, want)
	}
}
