package conformance

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// serverVariable makes this test binary serve requests instead of running tests, and behave as cases ask by their
// names.
const serverVariable = "TILTH_CONFORMANCE_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) == "" {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "tilth:", err)
		os.Exit(1)
	}
}

func serve() error {
	machine, err := target.Native(1)
	if err != nil {
		return err
	}
	tc, err := toolchain.Find(context.Background(), "")
	if err != nil {
		return err
	}
	return Serve(context.Background(), &Runner{Target: machine, Toolchain: tc, Numerics: schedule.Default}, misbehave{os.Stdin}, os.Stdout)
}

// misbehave crashes or hangs when a case's name says so.
type misbehave struct{ in *os.File }

func (m misbehave) Read(b []byte) (int, error) {
	n, err := m.in.Read(b)
	switch text := string(b[:n]); {
	case strings.Contains(text, "crashing"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
	case strings.Contains(text, "hanging"):
		select {}
	}
	return n, err
}

func pool() *Pool {
	return &Pool{Jobs: 2, Start: func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env = append(os.Environ(), serverVariable+"=1")
		return c
	}}
}

// double returns y = 2x on three numbers.
func double(op string) *onnx.Model {
	info := func(name string) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, DType: array.Float32, HasShape: true, Shape: []onnx.Dim{{Value: 3}}}
	}
	return &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name: "double", Inputs: []*onnx.ValueInfo{info("x")}, Outputs: []*onnx.ValueInfo{info("y")},
		Nodes: []*onnx.Node{{Op: op, Inputs: []string{"x", "x"}, Outputs: []string{"y"}}},
	}}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCase makes a case of double in which the last element is expected to be last.
func writeCase(t *testing.T, dir, op string, last float32) {
	t.Helper()
	write(t, filepath.Join(dir, "model.onnx"), double(op).Encode())
	x, y := array.FromFloat32([]float32{1, 2, 3}, 3), array.FromFloat32([]float32{2, 4, last}, 3)
	write(t, filepath.Join(dir, "test_data_set_0", "input_0.pb"), (&onnx.Tensor{Value: x}).Encode())
	write(t, filepath.Join(dir, "test_data_set_0", "output_0.pb"), (&onnx.Tensor{Value: y}).Encode())
}

func TestEveryCaseHasOneResult(t *testing.T) {
	dir := t.TempDir()
	writeCase(t, filepath.Join(dir, "deep", "er", "right"), "Add", 6)
	writeCase(t, filepath.Join(dir, "near"), "Add", 6.001)
	writeCase(t, filepath.Join(dir, "wrong"), "Add", 7)
	writeCase(t, filepath.Join(dir, "infinite"), "Add", float32(math.Inf(1)))
	writeCase(t, filepath.Join(dir, "unknown"), "Frobnicate", 6)
	writeCase(t, filepath.Join(dir, "crashing"), "Add", 6)
	writeCase(t, filepath.Join(dir, "cut"), "Add", 6)
	write(t, filepath.Join(dir, "cut", "test_data_set_0", "input_0.pb"), []byte{8, 3, 16, 1, 74, 200})
	writeCase(t, filepath.Join(dir, "broken"), "Add", 6)
	write(t, filepath.Join(dir, "broken", "model.onnx"), []byte("no model at all"))
	write(t, filepath.Join(dir, "bare", "model.onnx"), double("Add").Encode())
	cases, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	results := map[string]Result{}
	if err := pool().Run(t.Context(), cases, func(r Result) { results[r.Case] = r; names = append(names, r.Case) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		status Status
		reason string
	}{
		"deep/er/right": {Pass, ""}, "near": {Pass, ""},
		"wrong":    {Fail, `test_data_set_0: output "y": element 2 of f32[3] is 6, want 7`},
		"infinite": {Fail, "element 2 of f32[3] is 6, want +Inf"},
		"unknown":  {Unsupported, "Frobnicate"},
		"crashing": {Fail, "crashed: SIGSEGV: segmentation violation"},
		"cut":      {Fail, "input_0.pb"}, "broken": {Fail, "model.onnx"}, "bare": {Fail, "no test_data_set_* folder"},
	} {
		r := results[name]
		if r.Status != want.status || !strings.Contains(r.Reason, want.reason) || strings.Contains(r.Reason, "\n") {
			t.Errorf("%s: got %s %q, want %s %q", name, r.Status, r.Reason, want.status, want.reason)
		}
	}
	if r := results["near"]; r.MaxError == nil || math.Abs(*r.MaxError-0.001) > 1e-6 || results["infinite"].MaxError != nil {
		t.Errorf("errors: %v, %v", results["near"], results["infinite"])
	}
	if !slices.IsSorted(names) || len(names) != len(cases) {
		t.Errorf("reported out of order: %v", names)
	}
}

func TestCrashingCaseIsIsolated(t *testing.T) {
	dir := t.TempDir()
	var cases []Location
	for k := range 20 {
		name := fmt.Sprintf("case%02d", k)
		if k == 7 {
			name += "-crashing"
		}
		writeCase(t, filepath.Join(dir, name), "Add", 6)
		cases = append(cases, Location{name, filepath.Join(dir, name)})
	}
	p, started, bad := pool(), 0, 0
	p.Jobs = 1
	start := p.Start
	p.Start = func(ctx context.Context) *exec.Cmd { started++; return start(ctx) }
	err := p.Run(t.Context(), cases, func(r Result) {
		if want := strings.Contains(r.Case, "crashing"); (r.Status == Fail) != want {
			t.Errorf("got %v", r)
		}
		if r.Status == Fail {
			bad++
		}
	})
	if err != nil || bad != 1 || started != 4 {
		t.Errorf("%d cases failed, %d processes were started: %v; want 1 and 4", bad, started, err)
	}
}

func TestHangingCaseFailsAlone(t *testing.T) {
	dir := t.TempDir()
	writeCase(t, filepath.Join(dir, "hanging"), "Add", 6)
	p := pool()
	p.Limit = time.Second
	err := p.Run(t.Context(), []Location{{"hanging", dir}}, func(r Result) {
		if r.Status != Fail || r.Reason != "hung: no result within 1s" {
			t.Errorf("got %v", r)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFindNamesTheFolderThatHasNoCase(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Find(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no folder: %v", err)
	}
	write(t, filepath.Join(dir, "some", "model.onnx"), nil)
	for at, want := range map[string]string{dir: "some", filepath.Join(dir, "some"): "some"} {
		if found, err := Find(at); err != nil || len(found) != 1 || found[0].Name != want {
			t.Errorf("%s: %v, %v", at, found, err)
		}
	}
}

func TestTolerances(t *testing.T) {
	for _, c := range []struct {
		d         array.DType
		got, want float64
		ok        bool
	}{
		{array.Float32, 1.0009, 1, true}, {array.Float32, 1.002, 1, false}, {array.Float32, 9e-8, 0, true}, {array.Float32, 1e-6, 0, false},
		{array.Float16, 1.003, 1, true}, {array.Float16, 1.01, 1, false}, {array.BFloat16, 1.015625, 1, true}, {array.Int8, 3, 4, false},
		{array.Float64, math.NaN(), math.NaN(), true}, {array.Float32, math.NaN(), 1, false}, {array.Float32, math.Inf(1), math.Inf(1), true},
		{array.Float32, 1e30, math.Inf(1), false},
	} {
		got, want := array.New(c.d), array.New(c.d)
		got.SetFloat(0, c.got)
		want.SetFloat(0, c.want)
		if _, err := compare(got, want, 0); (err == nil) != c.ok {
			t.Errorf("%v: %g for %g: %v", c.d, c.got, c.want, err)
		}
	}
	got, want := array.FromFloat32([]float32{0.05, -10}, 2), array.FromFloat32([]float32{0, -10}, 2)
	for rounded, ok := range map[float64]bool{0: false, 0.004: false, 0.006: true} {
		if _, err := compare(got, want, rounded); (err == nil) != ok {
			t.Errorf("rounded by %g of the largest: %v", rounded, err)
		}
	}
	large, larger := array.New(array.Int64, 1), array.New(array.Int64, 1)
	large.SetInt(0, 1<<60)
	larger.SetInt(0, 1<<60+1)
	if worst, err := compare(large, larger, 0); err == nil || worst < 1 {
		t.Errorf("large integers: %g, %v", worst, err)
	}
}
