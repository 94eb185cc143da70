package frontend_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// moves is a model under construction that only moves elements of its input.
type moves struct {
	modeltest.Model
	*rand.Rand
	// last is the name of the last value, shape its shape.
	last  string
	shape []int64
	count int
}

func (m *moves) known(a *array.Array) string {
	m.count++
	name := fmt.Sprintf("k%d", m.count)
	m.Model = m.Known(name, a)
	return name
}

func (m *moves) node(shape []int64, format string, args ...any) {
	m.count++
	m.last, m.shape = fmt.Sprintf("v%d", m.count), shape
	m.Model = m.Node(m.last + " = " + fmt.Sprintf(format, args...))
}

// add adds an operator of the given kind.
func (m *moves) add(kind int) {
	axis := m.IntN(len(m.shape))
	shape, extent, last := slices.Clone(m.shape), m.shape[axis], m.last
	at := m.known(numbers(int64(axis)))
	switch kind {
	case 0: // every second element or every element, in either direction
		step := int64([]int{1, 2, -1, -2}[m.IntN(4)])
		start, end := m.Int64N(2), extent
		if step < 0 {
			start, end = extent-1-start, -extent-1
		}
		shape[axis] = 0
		for k := start; k >= 0 && k < extent; k += step {
			shape[axis]++
		}
		if shape[axis] > 0 {
			m.node(shape, "Slice %s %s %s %s %s", last, m.known(numbers(start)), m.known(numbers(end)), at, m.known(numbers(step)))
		}
	case 1:
		slices.Reverse(shape)
		m.node(shape, "Transpose %s", last)
	case 2:
		shape = append([]int64{2}, shape...)
		m.node(shape, "Expand %s %s", last, m.known(numbers(shape...)))
	case 3: // of itself and part of itself, after another
		m.node(shape, "Identity %s", last)
		shape[0] += m.shape[0]
		m.node(shape, "Concat %s %s", m.last, last)
		m.Graph.Nodes[len(m.Graph.Nodes)-1].Attributes = []*onnx.Attribute{modeltest.Int("axis", 0)}
	case 4:
		pads := make([]int64, 2*len(shape))
		pads[axis], pads[axis+len(shape)] = m.Int64N(3), min(m.Int64N(3)-1, extent-1)
		shape[axis] += pads[axis] + pads[axis+len(shape)]
		if shape[axis] > 0 {
			m.node(shape, "Pad %s %s %s", last, m.known(numbers(pads...)), m.known(array.FromInt64([]int64{-1})))
		}
	case 5: // of indices that are equally spaced
		at := []int64{extent - 1, (extent - 1) / 2}
		if shape[0] = 2; axis == 0 {
			m.node(shape, "Gather %s %s", last, m.known(numbers(at...)))
		}
	case 6:
		m.node([]int64{array.Elements(shape)}, "Reshape %s %s", last, m.known(numbers(-1)))
	case 7:
		m.node(append([]int64{1}, shape...), "Unsqueeze %s %s", last, m.known(numbers(0)))
	}
}

// TestIndicesAreCheckedThroughMoves: an index out of range is an error exactly if random moves take it to a Gather.
// Parts of reshaped indices may be no strided view, and are then not checked.
func TestIndicesAreCheckedThroughMoves(t *testing.T) {
	const elements, rows = 24, 30
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := &moves{modeltest.New().Input("i", 4, 6).Constant("table", rows, 1), r, "i", []int64{4, 6}, 0}
		m.Graph.Inputs[0].DType = array.Int64
		for range 1 + r.IntN(4) {
			if m.add(r.IntN(8)); array.Elements(m.shape) > 500 {
				break
			}
		}
		text := fmt.Sprint(seed)
		for _, n := range m.Graph.Nodes {
			text += fmt.Sprintf("; %s %v", n.Op, n.Inputs)
		}
		p, err := frontend.Import(m.Node("y = Gather table "+m.last).Output("y", m.last), frontend.Options{Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		indices := array.New(array.Int64, 4, 6)
		for k := range int64(elements) {
			indices.SetInt(k, k)
		}
		run := func() (map[string]*array.Array, error) {
			return evaluate.Program(p, map[string]*array.Array{"i": indices})
		}
		out, err := run()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var read [elements + 1]bool
		for k := range out[m.last].Len() {
			read[1+out[m.last].Int(k)] = true
		}
		for k := range int64(elements) {
			indices.SetInt(k, rows)
			_, err := run()
			if unchecked := err == nil && strings.Contains(text, "Reshape"); (err != nil) != read[1+k] && !unchecked {
				t.Errorf("%s: index %d is out of range and read: %v, with error %v", text, k, read[1+k], err)
			}
			indices.SetInt(k, k)
		}
	}
}

func TestBatchIndicesOfRegionsAreChecked(t *testing.T) {
	m := modeltest.New().Input("x", 2, 1, 4, 4).Input("regions", 3, 4).Input("batch", 3).Node("y = RoiAlign x regions batch", modeltest.Int("sampling_ratio", 1)).Output("y")
	m.Graph.Inputs[2].DType = array.Int64
	p := modeltest.Import(t, m)
	for batch, valid := range map[int64]bool{1: true, 2: false} {
		_, err := evaluate.Program(p, map[string]*array.Array{
			"x": array.New(array.Float32, 2, 1, 4, 4), "regions": array.New(array.Float32, 3, 4), "batch": numbers(0, batch, 0),
		})
		if (err == nil) != valid {
			t.Errorf("batch index %d of 2: error %v", batch, err)
		}
	}
}

// TestKnownIndicesAreCheckedAtImport: constants may reach an operator together with indices of an input.
func TestKnownIndicesAreCheckedAtImport(t *testing.T) {
	for second, valid := range map[int64]bool{4: true, 5: false} {
		m := modeltest.New().Constant("table", 5, 1).Input("i", 2).Known("k", numbers(9, second)).Known("from", numbers(1)).Known("to", numbers(4)).
			Node("all = Concat k i", modeltest.Int("axis", 0)).Node("part = Slice all from to").Node("y = Gather table part").Output("y")
		m.Graph.Inputs[0].DType = array.Int64
		_, err := frontend.Import(m, frontend.Options{Verify: true})
		if (err == nil) != valid || err != nil && !strings.HasSuffix(err.Error(), `node "make_y" (Gather): index 5 is outside of -5..4`) {
			t.Errorf("index %d: error %v", second, err)
		}
	}
}
