package aot

import (
	"path/filepath"
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
		{Extent{"n", 1, 6}, Varying{Axis: 2, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6}, Varying{Axis: -1, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6}, Varying{Axis: 0, Extent: "m", Times: 1}},
		{Extent{"n", 1, 6}, Varying{Axis: 0, Extent: "n", Times: 0}},
		{Extent{"n", 1, 6}, Varying{Axis: 0, Extent: "n", Times: -1}},
		{Extent{"n", 1, 1 << 62}, Varying{Axis: 0, Extent: "n", Times: 4}},
		{Extent{"n", -1, 6}, Varying{Axis: 0, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6}, Varying{Axis: 0, Extent: "n", Times: 2, Plus: -6}},
		{Extent{"n", 1, 7}, Varying{Axis: 0, Extent: "n", Times: 1}},
		{Extent{"n", 1, 6}, Varying{Axis: 0, Extent: "n", Times: 1, Plus: 1 << 62}},
	} {
		m := &Manifest{Extents: []Extent{c.extent}}
		if err := m.checkVarying(Tensor{Name: "x", DType: "f32", Shape: []int64{6, 4}, Varying: []Varying{c.varying}}); err == nil {
			t.Errorf("%+v of %+v is accepted", c.varying, c.extent)
		}
	}
}
