package aot

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// perceptron returns two layers and a softmax.
func perceptron() *onnx.Model {
	return modeltest.New().Input("x", 1, 64).Constant("w1", 64, 32).Constant("b1", 32).Constant("w2", 32, 10).
		Node("h1 = MatMul x w1").Node("h2 = Add h1 b1").Node("h3 = Relu h2").Node("h4 = MatMul h3 w2").Node("y = Softmax h4", modeltest.Int("axis", -1)).Output("y")
}

// convolutions are a dense one, a pool, one for each channel, an average, and a product; and most functions of libm.
func convolutions() *onnx.Model {
	pads := modeltest.Ints("pads", 1, 1, 1, 1)
	return modeltest.New().Input("x", 1, 3, 16, 16).Constant("w1", 8, 3, 3, 3).Constant("b1", 8).Constant("w2", 8, 1, 3, 3).Constant("w3", 8, 5).
		Known("flat", array.FromInt64([]int64{1, 8}, 2)).
		Node("c1 = Conv x w1 b1", pads).Node("r1 = Relu c1").Node("p1 = MaxPool r1", modeltest.Ints("kernel_shape", 2, 2), modeltest.Ints("strides", 2, 2)).
		Node("c2 = Conv p1 w2", pads, modeltest.Int("group", 8)).Node("s2 = Sigmoid c2").Node("g = GlobalAveragePool s2").Node("f = Reshape g flat").
		Node("m = MatMul f w3").Node("t = Tanh m").Node("y = Sin t").Output("y")
}

// quantisedLayers returns a convolution and a product of integers.
func quantisedLayers() *onnx.Model {
	small := func(n int64, shape ...int64) *array.Array {
		a := array.New(array.Int8, shape...)
		for k := range n {
			a.SetInt(k, k*37%61-30)
		}
		return a
	}
	scalar := func(x float64) *array.Array {
		a := array.New(array.Float32)
		a.SetFloat(0, x)
		return a
	}
	return modeltest.New().Input("x", 1, 2, 8, 8).Known("s", scalar(1./64)).Known("z", array.New(array.Int8)).
		Known("w1", small(72, 4, 2, 3, 3)).Known("s1", scalar(1./32)).Known("w2", small(256*6, 256, 6)).Known("big", scalar(1./2)).
		Known("flat", array.FromInt64([]int64{1, 256}, 2)).
		Node("q = QuantizeLinear x s z").Node("c = QLinearConv q s z w1 s1 z big z", modeltest.Ints("pads", 1, 1, 1, 1)).
		Node("f = Reshape c flat").Node("m = QLinearMatMul f big z w2 s1 z big z").Node("y = DequantizeLinear m big z").Output("y")
}

// choice returns an If whose condition is that the largest input exceeds a threshold.
func choice(threshold float64) func() *onnx.Model {
	side := func(name string, s modeltest.Model, output string) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.Output(output).Graph}
	}
	return func() *onnx.Model {
		limit := array.New(array.Float32)
		limit.SetFloat(0, threshold)
		return modeltest.New().Input("x", 4, 8).Constant("w", 8, 8).Known("limit", limit).
			Node("m = ReduceMax x", modeltest.Int("keepdims", 0)).Node("above = Greater m limit").
			Node("c = If above", side("then_branch", modeltest.New().Node("p = MatMul x w").Node("q = Neg p"), "q"),
				side("else_branch", modeltest.New().Node("r = MatMul x w").Node("s = MatMul r w"), "s")).
			Node("y = Relu c").Output("y")
	}
}

// steps returns a recurrent layer, which is a loop.
func steps() *onnx.Model {
	return modeltest.New().Opset(18).Input("x", 9, 1, 4).Constant("w", 1, 16, 4).Constant("r", 1, 16, 4).Node("y = LSTM x w r").Output("y")
}

// small are models that fit microcontrollers.
var small = map[string]func() *onnx.Model{
	"perceptron": perceptron, "convolutions": convolutions, "integers": quantisedLayers, "steps": steps,
	"then": choice(-1), "else": choice(1), // inputs lie between
}

func imported(t testing.TB, m *onnx.Model) *program.Program {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sourceOptions returns options for C source of a program for a target, untuned.
func sourceOptions(t testing.TB, p *program.Program, on *target.Target) Options {
	t.Helper()
	tc, _ := toolchaintest.Native(t, 1)
	choices, err := Defaults(on, schedule.Default)(p.Tasks)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Target: on, Toolchain: tc, Choices: choices, Parallel: 2, C: true, Prefix: "net", Output: filepath.Join(t.TempDir(), "net.tar")}
}

func board(t testing.TB, name string) *target.Target {
	t.Helper()
	on, err := target.Board(name, "board", 0)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// unpackSource writes the members of an archive into a folder, with what runs them.
func unpackSource(t testing.TB, archive string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"main.c", "start.h"} {
		data, err := os.ReadFile(filepath.Join("testdata", "board", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(r)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, header.Name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := `#include "net.h"
#define OUTPUT_BYTES NET_OUTPUT_0_BYTES
static void fill(void) {
  uint32_t s = 1;
  for (uint32_t k = 0; k < NET_INPUT_0_ELEMENTS; k++) s = s * 1664525u + 1013904223u, net_input_0()[k] = (float)(s >> 24) / 256 - 0.5f;
}
static void run(void) { net_run(); }
static const uint8_t *output(void) { return (const uint8_t *)net_output_0(); }
`
	if err := os.WriteFile(filepath.Join(dir, "run.h"), []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// filled returns the input that fill generates.
func filled(shape []int64) *array.Array {
	x, s := array.New(array.Float32, shape...), uint32(1)
	for k := range x.Len() {
		s = s*1664525 + 1013904223
		x.SetFloat(k, float64(s>>24)/256-0.5)
	}
	return x
}

// here returns the outputs of a package for this machine on the same inputs.
func here(t testing.TB, p *program.Program) *array.Array {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 1)
	in, out := p.Values[p.Inputs[0]], p.Values[p.Outputs[0]].Name
	outputs, err := RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{{in.Name: filled(in.Shape)}},
		Options{Target: machine, Toolchain: tc, Objects: openObjects(t, toolchaintest.Cache(t, "objects"))}, Defaults(machine, schedule.Default))
	if err != nil {
		t.Fatal(err)
	}
	return outputs[0][out]
}

// compareWords compares what main.c prints with an output in float32.
func compareWords(t testing.TB, printed []byte, want *array.Array) (instructions int64) {
	t.Helper()
	lines := strings.Fields(string(printed))
	if len(lines) != int(want.Len())+2 || lines[0] != "instructions" {
		t.Fatalf("%d words for %d elements: %.200q", len(lines), want.Len(), printed)
	}
	for k, line := range lines[1:] {
		bits, err := strconv.ParseUint(line, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			instructions = int64(bits)
			continue
		}
		got, w := float64(math.Float32frombits(uint32(bits))), want.Float(int64(k-1))
		if d := math.Abs(got - w); !(d <= 1e-5*(1+math.Abs(w))) {
			t.Fatalf("element %d is %v, want %v", k-1, got, w)
		}
	}
	return instructions
}

// command runs a program in a directory.
func command(t testing.TB, dir, name string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%.2000s", name, args, err, complaints.String())
	}
	return out
}

// TestSourceComputesWhatAPackageDoes compiles the source with gcc for this machine, without warnings.
func TestSourceComputesWhatAPackageDoes(t *testing.T) {
	start, err := filepath.Abs(filepath.Join("testdata", "board", "start_host.c"))
	if err != nil {
		t.Fatal(err)
	}
	_, machine := toolchaintest.Native(t, 1)
	for name, model := range small {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "perceptron" || name == "else") {
				t.Skip("slow: compiles another model with calls of the same kinds")
			}
			t.Parallel()
			p := imported(t, model())
			o := sourceOptions(t, p, machine)
			if _, err := Compile(t.Context(), p, o); err != nil {
				t.Fatal(err)
			}
			dir := unpackSource(t, o.Output)
			args := append(machine.GCCFlags(), toolchain.SourceFlags(machine, cFlags)...)
			args = append(args, "-Wall", "-Werror", "-Wno-psabi", "-Wno-unused-variable", "-I.", "-I"+filepath.Dir(start), "-o", "net", start, "main.c", "net.c", "net_kernels.c", "net_weights.c", "-lm")
			command(t, dir, "gcc", args...)
			compareWords(t, command(t, dir, "./net"), here(t, p))
		})
	}
}

// TestSourceForBoardsIsComplete checks that the source needs no C library, and states its memory requirements.
func TestSourceForBoardsIsComplete(t *testing.T) {
	for _, name := range target.Boards() {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "cortex-m55" {
				t.Skip("slow: compiles twice for each board")
			}
			t.Parallel()
			p := imported(t, convolutions())
			o := sourceOptions(t, p, board(t, name))
			m, err := Compile(t.Context(), p, o)
			if err != nil {
				t.Fatal(err)
			}
			c := m.C
			if len(c.Needs) > 0 || c.CodeBytes < 1000 || c.StackBytes < 16 || c.FlashBytes != m.WeightsBytes+c.CodeBytes || c.RAMBytes < m.ArenaBytes+c.StackBytes {
				t.Errorf("%+v with an arena of %d and weights of %d bytes", c, m.ArenaBytes, m.WeightsBytes)
			}
			dir := unpackSource(t, o.Output)
			header, err := os.ReadFile(filepath.Join(dir, "net.h"))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{
				fmt.Sprintf("#define NET_RAM_BYTES %d\n", c.RAMBytes), fmt.Sprintf("#define NET_FLASH_BYTES %d\n", c.FlashBytes), "#define NET_INPUT_0_SHAPE {1, 3, 16, 16}\n",
			} {
				if !strings.Contains(string(header), line) {
					t.Errorf("the header lacks %q", line)
				}
			}
			again := o
			again.Output = filepath.Join(t.TempDir(), "again.tar")
			again.Parallel = 1
			if _, err := Compile(t.Context(), p, again); err != nil {
				t.Fatal(err)
			}
			second := contents(t, again.Output)
			for member, data := range contents(t, o.Output) {
				if !bytes.Equal(second[member], data) {
					t.Errorf("compiled again, %s differs", member)
				}
			}
			if _, err := Load(o.Output); err == nil || !strings.Contains(err.Error(), "it is C source") {
				t.Errorf("loaded as a package: %v", err)
			}
		})
	}
}

// TestSourceThatDoesNotFitIsRefused checks that the error names the largest parts.
func TestSourceThatDoesNotFitIsRefused(t *testing.T) {
	p := imported(t, perceptron())
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{RAMBytes: 300}, "bytes of RAM, and --max-ram allows 300: most is in use for x (256 bytes)"},
		{Limits{FlashBytes: 9000}, "bytes of flash, and --max-flash allows 9000: most are the weights w1 (9216 bytes)"},
	} {
		o := sourceOptions(t, p, board(t, "cortex-m7"))
		o.Limits = c.limits
		if _, err := Compile(t.Context(), p, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.limits, err)
		}
		if _, err := os.Stat(o.Output); err == nil {
			t.Error("an archive was left")
		}
	}
}

// TestSourceThatCannotBeIsRefused checks for single-line errors.
func TestSourceThatCannotBeIsRefused(t *testing.T) {
	p := imported(t, perceptron())
	_, machine := toolchaintest.Native(t, 1)
	open := openDecoder(t)
	for name, c := range map[string]struct {
		p      *program.Program
		change func(o *Options)
		want   string
	}{
		"threads":      {p, func(o *Options) { o.Target = o.Target.WithThreads(2) }, "source in C runs on one thread, not 2"},
		"open extents": {open, func(*Options) {}, "cannot stay open in C source: fix it by --shape"},
		"a check":      {p, func(o *Options) { o.Check = func(*Model) (*Accuracy, error) { return nil, nil } }, "leave --check out"},
	} {
		o := sourceOptions(t, c.p, machine)
		c.change(&o)
		if _, err := Compile(t.Context(), c.p, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
