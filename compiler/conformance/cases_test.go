package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// casesDir has a folder for each case: model.onnx, input.npz and expected.npz, or input0.npz, expected0.npz and so on
// for several sizes, and, for open extents, a file shape with the value of --shape.
const casesDir = "testdata/cases"

// looseRounding lists the cases of float16 whose results depend on the order of roundings.
var looseRounding = map[string]bool{"att_mask_lowest_f16": true}

// modelCase is a case in casesDir with the inputs and results of each run.
type modelCase struct {
	name   string
	model  *onnx.Model
	shape  frontend.Options
	inputs []map[string]*array.Array
	wants  []map[string]*array.Array
}

// TestModelsComputeWhatONNXRuntimeDoes evaluates the cases, and runs them on each kind of target, in one package per
// target.
func TestModelsComputeWhatONNXRuntimeDoes(t *testing.T) {
	cases := readCases(t)
	failed := map[string]error{}
	fail := func(c *modelCase, on string, err error) {
		if failed[c.name] == nil && err != nil {
			failed[c.name] = fmt.Errorf("%s: %w", on, err)
		}
	}
	for _, c := range cases {
		fail(c, "evaluated", c.evaluate())
	}
	for k, on := range []struct {
		name     string
		numerics schedule.Numerics
	}{{"native", schedule.Default}, {"gpu-sim", schedule.Default}, {"native", schedule.Strict}, {"native", schedule.Fast}, {"reference", schedule.Default}} {
		if testing.Short() && k >= 2 {
			break // slow: compiles the cases for each
		}
		runCases(t, cases, on.name, on.numerics, func(c *modelCase, err error) { fail(c, fmt.Sprintf("%s %v", on.name, on.numerics), err) })
	}
	for _, c := range cases {
		if err := failed[c.name]; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// runCases compiles the cases for a target in one package, and one by one if that fails.
func runCases(t *testing.T, cases []*modelCase, target string, numerics schedule.Numerics, fail func(*modelCase, error)) {
	t.Helper()
	tc, _ := toolchaintest.Native(t, 1)
	on, err := registry.Target(target, 1)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := toolchaintest.Objects()
	if err != nil {
		t.Fatal(err)
	}
	storage, err := registry.Storage(on, numerics, array.Invalid)
	if err != nil {
		t.Fatal(err)
	}
	var held []*modelCase
	var programs []*program.Program
	for _, c := range cases {
		if on.GPU != nil && len(c.shape.Open) > 0 {
			continue // open extents are for processors
		}
		p, err := c.compile(storage)
		if err != nil {
			fail(c, err)
			continue
		}
		held, programs = append(held, c), append(programs, p)
	}
	o := aot.Options{Target: on, Toolchain: tc, Parallel: 2, Objects: objects}
	runs, err := aot.RunSeveral(t.Context(), programs, inputsOf(held), o, aot.Defaults(on, numerics))
	if err != nil && len(held) > 1 {
		for _, c := range held {
			runCases(t, []*modelCase{c}, target, numerics, fail)
		}
		return
	}
	runner := &Runner{Target: on, Numerics: numerics}
	for k, c := range held {
		rounded, boundErr := runner.rounded(programs[k])
		fail(c, errors.Join(err, boundErr))
		for r := range runs {
			fail(c, c.compare(runs[r][k], r, rounded))
		}
	}
}

// inputsOf returns the inputs of each run. A case with fewer runs repeats its first.
func inputsOf(cases []*modelCase) (runs [][]map[string]*array.Array) {
	most := 0
	for _, c := range cases {
		most = max(most, len(c.inputs))
	}
	for r := range most {
		var inputs []map[string]*array.Array
		for _, c := range cases {
			inputs = append(inputs, c.inputs[r%len(c.inputs)])
		}
		runs = append(runs, inputs)
	}
	return runs
}

func (c *modelCase) compile(storage array.Storage) (*program.Program, error) {
	o := c.shape
	o.Storage, o.Verify = storage, true
	return frontend.Import(c.model, o)
}

func (c *modelCase) evaluate() error {
	p, err := c.compile(array.Storage{})
	if err != nil {
		return err
	}
	for r := range c.inputs {
		outputs, err := evaluate.Program(p, c.inputs[r])
		if err == nil {
			err = c.compare(outputs, r, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare compares the outputs of a run. The tolerance is less than the precision of float16. Errors of sums, above
// all of Winograd's algorithm, are relative to the largest element.
func (c *modelCase) compare(outputs map[string]*array.Array, run int, rounded float64) error {
	wants := c.wants[run%len(c.wants)]
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		want := wants[name]
		tolerance := Tolerance{}
		if want.DType.IsFloat() {
			tolerance = Tolerance{1e-5, max(1e-6, (1e-6+rounded)*largest(want))}
		}
		if looseRounding[c.name] {
			tolerance.Absolute = largest(want) / 1024 // a unit in the last place
		}
		if outputs[name] == nil {
			return fmt.Errorf("no output %q", name)
		}
		if _, err := tolerance.compare(outputs[name], want); err != nil {
			return fmt.Errorf("run %d: output %q: %w", run, name, err)
		}
	}
	return nil
}

func readCases(t *testing.T) (cases []*modelCase) {
	t.Helper()
	dirs, err := os.ReadDir(casesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		c, err := readCase(d.Name())
		if err != nil {
			t.Fatalf("%s: %v", d.Name(), err)
		}
		cases = append(cases, c)
	}
	return cases
}

func readCase(name string) (*modelCase, error) {
	c, dir := &modelCase{name: name}, filepath.Join(casesDir, name)
	var err error
	if c.model, err = onnx.ReadFile(filepath.Join(dir, modelFile)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "shape"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if c.shape, err = parseShape(strings.TrimSpace(string(text))); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "input*.npz"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		in, err := npz.ReadFile(file)
		if err != nil {
			return nil, err
		}
		want, err := npz.ReadFile(strings.Replace(file, "input", "expected", 1))
		if err != nil {
			return nil, err
		}
		c.inputs, c.wants = append(c.inputs, in), append(c.wants, want)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no input.npz")
	}
	return c, nil
}

// parseShape parses extents such as "batch=1..4,width=8".
func parseShape(text string) (o frontend.Options, err error) {
	o.Shapes, o.Open = map[string][]int64{}, map[string]frontend.Bounds{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, extent, _ := strings.Cut(part, "=")
		lo, hi, open := strings.Cut(extent, "..")
		if !open {
			hi = lo
		}
		low, lowErr := strconv.ParseInt(lo, 10, 64)
		high, highErr := strconv.ParseInt(hi, 10, 64)
		if err := errors.Join(lowErr, highErr); err != nil {
			return o, err
		}
		if open {
			o.Open[name] = frontend.Bounds{Min: low, Max: high}
		} else {
			o.Shapes[name] = []int64{low}
		}
	}
	return o, nil
}
