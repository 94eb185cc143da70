package aot

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// Extents of the test model: x[rows, width] through layers of width x width.
const (
	rows  = 4
	width = 32
)

// dense returns relu(x * w).
func dense(t testing.TB) *expr.Workload {
	t.Helper()
	x, w := expr.NewInput("x", array.Float32, rows, width), expr.NewConstant("w", array.Float32, width, width)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{rows, width}, []int64{width}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], r[0]), w.At(r[0], i[1]))
	})
	out := expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(sum.At(i...), expr.Zero(array.Float32)) })
	return workload(t, out)
}

// add returns x + y.
func add(t testing.TB) *expr.Workload {
	t.Helper()
	x, y := expr.NewInput("x", array.Float32, rows, width), expr.NewInput("y", array.Float32, rows, width)
	return workload(t, expr.Compute("out", []int64{rows, width}, func(i []expr.Expr) expr.Expr { return expr.AddE(x.At(i...), y.At(i...)) }))
}

func workload(t testing.TB, out *expr.Tensor) *expr.Workload {
	t.Helper()
	w, err := expr.NewWorkload([]*expr.Tensor{out})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sample returns a deterministic array with values in [-1, 1).
func sample(seed uint32, shape ...int64) *array.Array {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		seed = seed*1664525 + 1013904223
		a.SetFloat(i, float64(int32(seed))/(1<<31))
	}
	return a
}

// residual returns a model of four calls: h = dense(x, w1); g = dense(h, w2); y = h + g; z = flat view of dense(y,
// w1).
func residual(t testing.TB) *program.Program {
	t.Helper()
	value := func(name string, shape ...int64) program.Value {
		return program.Value{Name: name, DType: array.Float32, Shape: shape, Alias: -1}
	}
	p := &program.Program{Name: "residual", Values: []program.Value{
		value("x \"quoted\"", rows, width), value("w1", width, width), value("w2", width, width),
		value("h", rows, width), value("g", rows, width), value("y", rows, width), value("z", rows, width), value("flat", rows*width),
	}}
	p.Values[1].Data, p.Values[2].Data = sample(1, width, width), sample(2, width, width)
	p.Values[7].Alias = 6
	p.Inputs, p.Outputs = []int{0}, []int{7, 5, 1}
	p.Tasks = []program.Task{{Workload: dense(t), Name: "dense", Count: 3}, {Workload: add(t), Name: "add", Count: 1}}
	p.Calls = []program.Call{
		{Name: "layer1", Task: 0, Args: []int{0, 1, 3}}, {Name: "layer2", Task: 0, Args: []int{3, 2, 4}},
		{Name: "sum", Task: 1, Args: []int{3, 4, 5}}, {Name: "layer3", Task: 0, Args: []int{5, 1, 6}},
	}
	return p
}

// packed schedules dense over packed weights with parallel columns, and add without primitives.
func packed(t testing.TB, p *program.Program) []Choice {
	t.Helper()
	s := schedule.New(p.Tasks[0].Workload)
	outer, _, err := s.Split(1, 1, 8, schedule.Peel)
	if err == nil {
		err = s.Pack(0, []schedule.PackDim{{Dim: 1, Factor: 8}, {Dim: 0}, {Dim: 1, Factor: 8, Inner: true}})
	}
	if err == nil {
		err = s.Reorder(1, outer, 0)
	}
	if err == nil {
		err = s.ComputeAt(0, 1, outer)
	}
	if err == nil {
		err = s.Parallel(1, outer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []Choice{{Trace: s.Trace(), Origin: "tuned", LatencySeconds: 1e-6}, {Trace: schedule.New(p.Tasks[1].Workload).Trace(), Origin: "default"}}
}

// options returns options for this machine, with the shared object cache, since most tests compile the same code.
func options(t testing.TB, p *program.Program) Options {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 0)
	return Options{
		Target: machine, Toolchain: tc, Choices: packed(t, p), Parallel: 2, Output: filepath.Join(t.TempDir(), "model.tar"),
		Objects: openObjects(t, toolchaintest.Cache(t, "objects")),
	}
}

func openObjects(t testing.TB, dir string) *toolchain.Objects {
	t.Helper()
	objects, err := toolchain.OpenObjects(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// compiled returns a package of the residual model.
func compiled(t testing.TB) (*program.Program, string) {
	t.Helper()
	p := residual(t)
	o := options(t, p)
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	return p, o.Output
}

func opened(t testing.TB, path string) *Model {
	t.Helper()
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func inputName(p *program.Program) string { return p.Values[p.Inputs[0]].Name }

func TestPackageComputesWhatTheProgramMeans(t *testing.T) {
	p, path := compiled(t)
	m := opened(t, path)
	for seed := range uint32(3) {
		inputs := map[string]*array.Array{inputName(p): sample(10+seed, rows, width)}
		want, err := evaluate.Program(p, inputs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Run(inputs)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Execute(); err != nil { // again, on the inputs that are still there
			t.Fatal(err)
		}
		compare(t, got, want)
		compare(t, m.Outputs(), want)
	}
}

// TestKeptObjectsMakeTheSamePackage checks that cached objects give the same package as compilation.
func TestKeptObjectsMakeTheSamePackage(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	o.Objects = openObjects(t, filepath.Join(t.TempDir(), "objects"))
	var packages [2]string
	for k := range packages {
		if _, err := Compile(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(o.Output)
		if err != nil {
			t.Fatal(err)
		}
		packages[k] = string(data)
	}
	if packages[0] != packages[1] {
		t.Error("the packages differ")
	}
	inputs := map[string]*array.Array{inputName(p): sample(3, rows, width)}
	want, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := opened(t, o.Output).Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, want)
}

func compare(t *testing.T, got, want map[string]*array.Array) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil || len(g.Shape) != len(w.Shape) {
			t.Fatalf("output %s: %v", name, g)
		}
		for i := range w.Len() {
			if d := math.Abs(g.Float(i) - w.Float(i)); !(d <= 1e-4*(1+math.Abs(w.Float(i)))) {
				t.Fatalf("output %s[%d] = %v, want %v", name, i, g.Float(i), w.Float(i))
			}
		}
	}
}

func TestManifestTellsWhereSchedulesComeFrom(t *testing.T) {
	_, path := compiled(t)
	m, err := ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.Model != "residual" || len(m.Calls) != 4 || m.Tasks[0].Origin != "tuned" || !strings.Contains(m.Tasks[0].Trace, "pack 0") {
		t.Errorf("manifest %+v", m)
	}
	if m.ArenaBytes < m.ArenaLowerBoundBytes || m.ArenaLowerBoundBytes < 3*rows*width*4 {
		t.Errorf("arena %d, lower bound %d", m.ArenaBytes, m.ArenaLowerBoundBytes)
	}
	// w1 is packed for two calls and also an output as it is; w2 is packed only.
	if want := int64(3 * width * width * 4); m.WeightsBytes != want {
		t.Errorf("weights take %d bytes, want %d", m.WeightsBytes, want)
	}
}

func TestModelRefusesWrongInputs(t *testing.T) {
	p, path := compiled(t)
	m := opened(t, path)
	good := sample(1, rows, width)
	cases := map[string]struct {
		inputs map[string]*array.Array
		want   string
	}{
		"missing":     {map[string]*array.Array{}, "is missing"},
		"misnamed":    {map[string]*array.Array{inputName(p): good, "q": good}, `has no input "q"; its inputs are`},
		"wrong shape": {map[string]*array.Array{inputName(p): sample(1, width, rows)}, "is f32[32 4], not f32[4 32]"},
		"wrong type":  {map[string]*array.Array{inputName(p): array.New(array.Int32, rows, width)}, "is i32[4 32], not f32[4 32]: convert it, for example by numpy's astype"},
		"wrong bytes": {map[string]*array.Array{inputName(p): {DType: array.Float32, Shape: good.Shape, Data: good.Data[1:]}}, "needs 512 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := m.Run(c.inputs); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTimeAndProfile(t *testing.T) {
	p, path := compiled(t)
	m := opened(t, path)
	if err := m.SetInputs(map[string]*array.Array{inputName(p): sample(1, rows, width)}); err != nil {
		t.Fatal(err)
	}
	times, err := m.Time(t.Context(), 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := m.Profile()
	if err != nil {
		t.Fatal(err)
	}
	if err != nil || len(times) != 3 || len(calls) != 4 {
		t.Fatalf("%v %v %v", times, err, calls)
	}
	for _, s := range append(times, calls...) {
		if s <= 0 {
			t.Errorf("%v %v", times, calls)
		}
	}
}

func TestPackageSaysWhatBoundsIt(t *testing.T) {
	p, path := compiled(t)
	m := opened(t, path)
	if peak := m.Peak(); peak.FlopsPerSecond <= 0 || peak.BytesPerSecond <= 0 {
		t.Errorf("peak %+v", peak)
	}
	for k, task := range m.Manifest().Tasks {
		if w := p.Tasks[k].Workload; task.Flop != w.Flop() || task.Bytes != w.Bytes() || task.Bytes == 0 {
			t.Errorf("task %s: %g operations and %d bytes, want %g and %d", task.Name, task.Flop, task.Bytes, w.Flop(), w.Bytes())
		}
	}
}

func TestTimeEndsWithItsContext(t *testing.T) {
	p, path := compiled(t)
	m := opened(t, path)
	if err := m.SetInputs(map[string]*array.Array{inputName(p): sample(1, rows, width)}); err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := m.Time(ctx, 1<<30, 1<<30); !errors.Is(err, interrupted) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

func TestCompileLeavesNothingWhenItFails(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	o.Choices[1].Trace = []byte("tilth-trace 1\nsplit 9 9 9 9\n")
	if _, err := Compile(t.Context(), p, o); err == nil || !strings.Contains(err.Error(), "task 1 (add): trace: line 2") {
		t.Errorf("got %v", err)
	}
	o.Choices = o.Choices[:1]
	if _, err := Compile(t.Context(), p, o); err == nil {
		t.Error("a task without a schedule was compiled")
	}
	if entries, _ := os.ReadDir(filepath.Dir(o.Output)); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestPanicWhileLoweringIsAnError(t *testing.T) {
	c := &compilation{program: &program.Program{Tasks: []program.Task{{Name: "broken"}}}, options: Options{Choices: []Choice{{Trace: []byte("tilth-trace 1\n")}}}}
	if err := c.lower(); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v", err)
	}
}
