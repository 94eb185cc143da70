package aot

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// openSoftmax is a package of a softmax over 1 to 6 rows, with kernels of their own for 1 and 2, and of pairs of rows.
func openSoftmax(t *testing.T) (*program.Program, Options) {
	t.Helper()
	m := modeltest.New().Input("x", 6, 4).Input("y", 6, 4).Node("sum = Add x y").Node("all = Softmax sum", modeltest.Int("axis", 0)).
		Node("pairs = Concat x y", modeltest.Int("axis", 0)).Output("all", "pairs")
	for _, in := range m.Graph.Inputs {
		in.Shape[0] = onnx.Dim{Value: -1, Param: "rows"}
	}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"rows": {Min: 1, Max: 6, Caps: []int64{1, 2}}}, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p, plain(t, p)
}

func TestRunsChooseExtents(t *testing.T) {
	p, o := openSoftmax(t)
	m := opened(t, o.Output)
	if got := m.Manifest().Inputs[0].String(); got != "f32[rows 4]" {
		t.Errorf("the input is %s, want f32[rows 4]", got)
	}
	for _, rows := range []int64{6, 1, 4, 2, 3, 6} {
		inputs := map[string]*array.Array{"x": sample(1, rows, 4), "y": sample(2, rows, 4)}
		runEvaluated(t, p, m, inputs)
		if got := m.Extents()["rows"]; got != rows {
			t.Errorf("the model has run with %d rows, not %d", got, rows)
		}
	}
}

func TestExtentsFromC(t *testing.T) {
	_, o := openSoftmax(t)
	dir := unpackedFor(t, o, "extents.c")
	out, err := run(t, []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName), "4"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "rows 1..6\nx 4/12 4/4\ny 4/6 4/4\nall 4/6 4/4 0.25\npairs 8/12 4/4 1\nbeyond: refused\n"
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// openPairs is a package with 4 to 32 columns, in steps of 4. Its outputs have as many, a quarter, and half of the
// quarter, rounded up.
func openPairs(t *testing.T) (*program.Program, Options) {
	t.Helper()
	numbers := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	m := modeltest.New().Opset(18).Input("x", 3, 32).Open("x", 0, "rows").Open("x", 1, "columns").
		Known("zero", numbers(0)).Known("one", numbers(1)).Known("two", numbers(2)).Known("four", numbers(4)).Known("end", numbers(1<<40)).
		Node("all = Softmax x").Node("quarters = Slice x zero end one four").
		Node("halves = Slice quarters zero end one two").Node("both = Transpose halves", modeltest.Ints("perm", 1, 0)).
		Output("all", "quarters", "halves", "both")
	p, err := frontend.Import(m, frontend.Options{Verify: true, Open: map[string]frontend.Bounds{
		"columns": {Min: 4, Max: 32, Step: 4, Caps: []int64{8}}, "rows": {Min: 1, Max: 3, Caps: []int64{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p, plain(t, p)
}

func TestExtentsWithSteps(t *testing.T) {
	p, o := openPairs(t)
	m := opened(t, o.Output)
	if e := m.Manifest().Extents[0]; e != (Extent{"columns", 4, 32, 4}) || m.Manifest().Format != Format {
		t.Errorf("the extent is %+v, in format %d", e, m.Manifest().Format)
	}
	var shown []string
	for _, tensor := range slices.Concat(m.Manifest().Inputs, m.Manifest().Outputs) {
		shown = append(shown, tensor.String())
	}
	if want := []string{"f32[rows columns]", "f32[rows columns]", "f32[rows columns/4]", "f32[rows 0..4]", "f32[0..4 rows]"}; !slices.Equal(shown, want) {
		t.Errorf("got %q, want %q", shown, want)
	}
	for _, size := range [][2]int64{{3, 32}, {1, 4}, {2, 12}, {3, 8}, {2, 28}} {
		runEvaluated(t, p, m, map[string]*array.Array{"x": sample(1, size[0], size[1])})
		if got := m.Extents()["columns"]; got != size[1] {
			t.Errorf("the model has run with %d columns, not %d", got, size[1])
		}
		for _, task := range m.Manifest().Executed(m.Extents()) {
			if !task.IsOf(m.Extents()) {
				t.Errorf("%s is that of %v", task.Name, task.Extents)
			}
		}
	}
	for columns, says := range map[int64]string{
		10: `input "x" has 10 elements on axis 1, which none of columns in 4..32, in steps of 4, has`,
		36: `input "x" has 36 elements on axis 1, which none of columns in 4..32, in steps of 4, has`,
	} {
		if _, err := m.Run(map[string]*array.Array{"x": array.New(array.Float32, 1, columns)}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d columns: %v, want an error that says %s", columns, err, says)
		}
	}
}

func TestExtentsWithStepsFromC(t *testing.T) {
	_, o := openPairs(t)
	dir := unpackedFor(t, o, "extents.c")
	user := []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName)}
	out, err := run(t, append(user, "12", "2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "columns 4..32\nrows 1..3\nx 2/3 12/32\nall 2/3 12/32 0.0833333\nquarters 2/3 3/8 1\nhalves 2/3 2/4 1\nboth 2/4 2/3 1\nbeyond: refused\n"
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if out, err := run(t, append(user, "10", "2"), nil); err == nil {
		t.Errorf("10 columns are accepted: %s", out)
	}
}

// TestExtentsOfAnotherPackage: a manifest whose extents do not match the code is an error.
func TestExtentsOfAnotherPackage(t *testing.T) {
	_, o := openSoftmax(t)
	m := opened(t, o.Output)
	m.manifest.Extents[0].Name = "columns"
	if err := m.checkExtents(); err == nil || !strings.Contains(err.Error(), "do not belong together") {
		t.Errorf("%v, want an error that says that the two do not belong together", err)
	}
}

func TestInvalidExtentsAreRefused(t *testing.T) {
	_, o := openSoftmax(t)
	m := opened(t, o.Output)
	for _, c := range []struct {
		x, y []int64
		says string
	}{
		{[]int64{7, 4}, []int64{7, 4}, `input "x" has 7 elements on axis 0, which none of rows in 1..6 has`},
		{[]int64{2, 4}, []int64{3, 4}, `input "y" has 3 elements on axis 0, but 2 according to other inputs`},
		{[]int64{2, 4}, []int64{2, 5}, `input "y" is f32[2 5]`},
		{[]int64{2, 4}, []int64{2}, `input "y" is f32[2]`},
	} {
		_, err := m.Run(map[string]*array.Array{"x": array.New(array.Float32, c.x...), "y": array.New(array.Float32, c.y...)})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("inputs of %v and %v: %v, want an error that says %s", c.x, c.y, err, c.says)
		}
	}
}

// TestHostileExtents checks arbitrary manifests.
func TestHostileExtents(t *testing.T) {
	for _, c := range []struct {
		extent  Extent
		varying Varying
	}{
		{Extent{"n", 1, 6, 0}, Varying{Axis: 2, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: -1, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: 0, Extent: "m", Times: 1}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: 0, Extent: "n", Times: 0}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: 0, Extent: "n", Times: -1}},
		{Extent{"n", 1, 1 << 62, 0}, Varying{Axis: 0, Extent: "n", Times: 4}},
		{Extent{"n", -1, 6, 0}, Varying{Axis: 0, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: 0, Extent: "n", Times: 2, Plus: -6}},
		{Extent{"n", 1, 7, 0}, Varying{Axis: 0, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6, 0}, Varying{Axis: 0, Extent: "n", Times: 1, Plus: 1 << 62}},
		{Extent{"n", 1, 6, 4}, Varying{Axis: 0, Extent: "n", Times: 1}},
		{Extent{"n", 4, 8, 2}, Varying{Axis: 0, Extent: "n", Times: 2}},
	} {
		m := &Manifest{Extents: []Extent{c.extent}}
		if err := m.checkVarying(Tensor{Name: "x", DType: "f32", Shape: []int64{6, 4}, Varying: []Varying{c.varying}}); err == nil {
			t.Errorf("%+v of %+v is accepted", c.varying, c.extent)
		}
	}
}
