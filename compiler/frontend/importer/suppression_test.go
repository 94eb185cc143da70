package importer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// detections are a random NonMaxSuppression. Coordinates are small integers and scores few, so that shares are exact
// and many scores are equal; some scores are NaN.
type detections struct {
	batch, classes, count int64
	centres               int64
	max                   int64
	overlap, min          float32
	boxes, scores         []float32
}

func randomDetections(rng *rand.Rand) detections {
	d := detections{
		batch: 1 + rng.Int64N(3), classes: 1 + rng.Int64N(4), count: 1 + rng.Int64N(40), centres: rng.Int64N(2),
		max: rng.Int64N(12), overlap: float32(rng.IntN(5)) / 4, min: float32(rng.IntN(7)-1) / 4,
	}
	side := 1 + rng.IntN(8) // boxes in a small square overlap
	for range 4 * d.batch * d.count {
		d.boxes = append(d.boxes, float32(rng.IntN(side+1)))
	}
	for range d.batch * d.classes * d.count {
		score := float32(rng.IntN(5)) / 4
		if rng.IntN(20) == 0 {
			score = float32(math.NaN())
		}
		d.scores = append(d.scores, score)
	}
	return d
}

// corners returns the lower and the upper ends of a box on both axes.
func (d detections) corners(batch, box int64) (low, high [2]float32) {
	b := d.boxes[4*(batch*d.count+box):][:4]
	for k := range low {
		low[k], high[k] = min(b[k], b[k+2]), max(b[k], b[k+2])
		if d.centres != 0 {
			low[k], high[k] = b[k]-b[k+2]/2, b[k]+b[k+2]/2
		}
	}
	return low, high
}

func (d detections) overlaps(batch, a, b int64) bool {
	lowA, highA := d.corners(batch, a)
	lowB, highB := d.corners(batch, b)
	both, areaA, areaB := float32(1), float32(1), float32(1)
	for k := range lowA {
		both *= max(0, min(highA[k], highB[k])-max(lowA[k], lowB[k]))
		areaA *= highA[k] - lowA[k]
		areaB *= highB[k] - lowB[k]
	}
	return both > 0 && both/(areaA+areaB-both) > d.overlap
}

// selected returns the rows of the result by ONNX's definition: in each class, repeatedly the best box, the first
// of equal ones, that overlaps no selected one, until enough are selected or no box remains.
func (d detections) selected() []int64 {
	rows := []int64{}
	for row := range d.batch * d.classes {
		batch, class := row/d.classes, row%d.classes
		scores := d.scores[row*d.count:][:d.count]
		out := make([]bool, d.count)
		for range d.max {
			best := int64(-1)
			for k, score := range scores {
				if !out[k] && score > d.min && (best < 0 || score > scores[best]) {
					best = int64(k)
				}
			}
			if best < 0 {
				break
			}
			rows = append(rows, batch, class, best)
			for k := range d.count {
				out[k] = out[k] || k == best || d.overlaps(batch, best, k)
			}
		}
	}
	return rows
}

// model returns the operator, with the number of boxes known or computed, and its inputs.
func (d detections) model(known bool) (*onnx.Model, map[string]*array.Array) {
	m := modeltest.New().Input("boxes", d.batch, d.count, 4).Input("scores", d.batch, d.classes, d.count).
		Input("overlap", 1).Input("least", 1)
	inputs := map[string]*array.Array{
		"boxes": array.FromFloat32(d.boxes, d.batch, d.count, 4), "scores": array.FromFloat32(d.scores, d.batch, d.classes, d.count),
		"overlap": floats(d.overlap), "least": floats(d.min),
	}
	if known {
		m = m.Known("most", array.FromInt64([]int64{d.max}, 1))
	} else {
		m = m.Input("n", 1).Node("most = Cast n", modeltest.Int("to", 7))
		inputs["n"] = floats(float32(d.max))
	}
	return m.Node("rows = NonMaxSuppression boxes scores most overlap least", modeltest.Int("center_point_box", d.centres)).Output("rows"), inputs
}

// want checks the rows of a result.
func (d detections) want(t *testing.T, rows *array.Array) {
	t.Helper()
	want := d.selected()
	wantShape(t, rows, int64(len(want)/3), 3)
	wantInts(t, rows, want...)
}

// TestRandomBoxesAreSuppressed compares with a plain loop, for a known and a computed number of boxes.
func TestRandomBoxesAreSuppressed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 200 {
		d := randomDetections(rng)
		model, inputs := d.model(k%2 == 0)
		t.Run(fmt.Sprint(k), func(t *testing.T) { d.want(t, results(t, model, inputs)["rows"]) })
	}
}

// TestFewOfManyBoxesAreTakenFromAPool checks the pool, and the fallback to all boxes if too many of the best
// overlap.
func TestFewOfManyBoxesAreTakenFromAPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	made := map[bool]int{} // by whether all boxes were looked at
	for k := range 24 {
		d := detections{batch: 1, classes: 1 + rng.Int64N(2), count: 1024 + rng.Int64N(100), max: 2 + rng.Int64N(7), overlap: 0.25, min: 0.1}
		better, alike := rng.Int64N(d.count), float32(2+rng.IntN(1000))
		for box := range d.count {
			x, y := float32(rng.IntN(30)), float32(rng.IntN(30))
			if box < better && k%2 == 0 {
				x, y = 0, 0
			}
			d.boxes = append(d.boxes, x, y, x+1+float32(rng.IntN(2)), y+1+float32(rng.IntN(2)))
		}
		for range d.classes {
			for box := range d.count {
				score := float32(math.Floor(rng.Float64()*float64(alike))) / alike // some are equal
				if box < better {
					score++
				}
				d.scores = append(d.scores, score)
			}
		}
		model, inputs := d.model(true)
		p := modeltest.Import(t, model)
		all := false
		outs, err := evaluate.Calls(p, inputs, func(c program.Call, _, _ []*array.Array) { all = all || len(c.If) > 0 })
		if err != nil {
			t.Fatal(err)
		}
		made[all]++
		t.Run(fmt.Sprint(k), func(t *testing.T) { d.want(t, outs["rows"]) })
	}
	if made[true] < 3 || made[false] < 3 {
		t.Errorf("all boxes were looked at in %d cases, and the pool alone in %d: want some of both", made[true], made[false])
	}
}
