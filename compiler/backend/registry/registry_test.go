package registry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

const (
	module   = "github.com/tilth-dev/tilth/"
	backends = "compiler/backend/"
)

// TestBackendsAreKnownByTheirInterfaceAlone checks that no other package imports a backend's internals, or reads
// fields of targets that belong to a kind of device.
func TestBackendsAreKnownByTheirInterfaceAlone(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "testdata" || name == "lab/tools") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files++
		for _, imported := range file.Imports {
			pkg, ours := strings.CutPrefix(strings.Trim(imported.Path.Value, `"`), module+backends)
			// The fake driver stands in for CUDA's, so it is a part of that backend.
			if !ours || pkg == "registry" || strings.HasPrefix(name, backends) || strings.HasPrefix(name, "lab/testkit/fakedriver/") {
				continue
			}
			t.Errorf("%s imports the backend's own package %s", name, pkg)
		}
		if !strings.HasPrefix(name, backends) && !strings.HasPrefix(name, "compiler/target/") {
			for _, part := range parts(file) {
				t.Errorf("%s reads the part %s of a target", name, part)
			}
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// parts returns the device-specific target fields that a file reads.
func parts(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		outer, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// x.CPU.Field, with a field of target.CPU.
		if inner, ok := outer.X.(*ast.SelectorExpr); ok && hasField(devices[inner.Sel.Name], outer.Sel.Name) {
			names = append(names, inner.Sel.Name+"."+outer.Sel.Name)
		}
		return true
	})
	return names
}

// devices holds the parts of targets.
var devices = map[string]reflect.Type{"CPU": reflect.TypeFor[*target.CPU](), "GPU": reflect.TypeFor[*target.GPU]()}

func hasField(device reflect.Type, name string) bool {
	if device == nil {
		return false
	}
	_, field := device.Elem().FieldByName(name)
	_, method := device.MethodByName(name)
	return field || method
}

// TestEveryBackendComputesTheSame runs a whole, untuned model.
func TestEveryBackendComputesTheSame(t *testing.T) {
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*array.Array{}
	for _, v := range p.Inputs {
		value := p.Values[v]
		x := array.New(value.DType, value.Shape...)
		for k := range x.Len() {
			x.SetFloat(k, float64(k%17)/17-0.5)
		}
		inputs[value.Name] = x
	}
	tc, machine := toolchaintest.Native(t, 0)
	var first map[string]*array.Array
	for _, b := range registry.All() {
		if _, ok := b.(backend.Chooser); ok { // a device that this machine may lack; package aot's tests simulate one
			continue
		}
		on, err := b.Target(b.Targets()[0].Name, threadsOf(b, machine))
		if err != nil {
			t.Fatal(err)
		}
		if !on.HasOperatingSystem() { // a microcontroller
			continue
		}
		on = on.WithToolchain(machine.Toolchain)
		defaults := func(tasks []program.Task) ([]aot.Choice, error) {
			var list []aot.Choice
			for _, task := range tasks {
				s, err := registry.Space(task.Workload, on, schedule.Default)
				if err != nil {
					t.Fatal(err)
				}
				applied, err := s.Apply(s.Default())
				if err != nil {
					return nil, err
				}
				list = append(list, aot.Choice{Trace: applied.Trace(), Origin: "default"})
			}
			return list, nil
		}
		outputs, err := aot.RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{inputs},
			aot.Options{Target: on, Toolchain: tc}, defaults)
		if err != nil {
			t.Fatalf("%s: %v", b.Name(), err)
		}
		if first == nil {
			first = outputs[0]
			continue
		}
		for name, want := range first {
			got := outputs[0][name]
			for k := range want.Len() {
				if d := got.Float(k) - want.Float(k); d > 1e-5 || d < -1e-5 {
					t.Fatalf("%s: element %d of %s is %v, by the first backend %v", b.Name(), k, name, got.Float(k), want.Float(k))
				}
			}
		}
	}
}

// threadsOf returns a machine's number of threads, or 0 for a backend whose targets have a fixed number.
func threadsOf(b backend.Backend, machine *target.Target) int {
	if b.Name() == "board" {
		return 0
	}
	return machine.Threads()
}

// TestTargetsLackNothingThatTheirBackendNeeds checks that a GPU's backend refuses a target without one.
func TestTargetsLackNothingThatTheirBackendNeeds(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Of(machine.WithBackend("gpusim")); err == nil || !strings.Contains(err.Error(), "has no GPU") {
		t.Errorf("a simulated GPU that is none: %v", err)
	}
}

// TestTargetsOfABackendThatIsNotThereAreRefused checks that the error names it.
func TestTargetsOfABackendThatIsNotThereAreRefused(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Of(machine.WithBackend("tpu")); err == nil || !strings.Contains(err.Error(), `"tpu"`) {
		t.Errorf("a backend that is not there: %v", err)
	}
	path := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(path, machine.WithBackend("tpu").Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Target(path, 0); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file with such a target: %v", err)
	}
	if _, err := registry.Target("native:99", 0); err == nil || !strings.Contains(err.Error(), `no class of cores "99"`) {
		t.Errorf("a class of cores that is not there: %v", err)
	}
	if _, err := registry.Target("arm64:1", 0); err == nil || !strings.Contains(err.Error(), "only native has") {
		t.Errorf("a class of cores of another machine: %v", err)
	}
}

func TestTargetsAreKnownByTheNamesThatPeopleUse(t *testing.T) {
	for name, want := range map[string]string{
		"native": "native", "native:1": "native:1", "cuda:1": "cuda:1", "board.json": "board.json",
		"x86_64": "x86-64-v2", "AMD64": "x86-64-v2", "avx2": "x86-64-v3", "AVX512": "x86-64-v4",
		"aarch64": "arm64", "arm64": "arm64", "armv7": "arm32", "riscv64": "riscv64",
		"raspberry-pi-3": "arm64", "raspberry_pi_4": "arm64", "cortex-a72": "arm64", "raspberry-pi-5": "cortex-a76",
		"sm_90a": "sm_90a", "H100": "sm_90a", "cortex-m4": "cortex-m4",
	} {
		if got, err := registry.Resolve(name); got != want || err != nil {
			t.Errorf("%s is %s (%v), want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"rasberry-pi-4": ": did you mean raspberry-pi-4? 'tilth targets' lists all",
		"x86-64-v5":     ": did you mean x86-64-v2?",
		"nonsense":      `"nonsense": unknown target: 'tilth targets' lists all; a .json file describes another`,
		"opencl:1":      "opencl has no devices to choose from: leave :1 out",
	} {
		if _, err := registry.Target(name, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestNoTwoTargetsShareAName(t *testing.T) {
	all := map[string]string{}
	for _, named := range registry.Targets() {
		if named.Description == "" {
			t.Errorf("%s has no description", named.Name)
		}
		for _, name := range append([]string{named.Name}, named.Aliases...) {
			if got, err := registry.Resolve(name); got != named.Name || err != nil {
				t.Errorf("%s is %s (%v), want %s", name, got, err, named.Name)
			}
			if other, twice := all[name]; twice {
				t.Errorf("%s is both %s and %s", name, named.Name, other)
			}
			all[name] = named.Name
		}
	}
}
