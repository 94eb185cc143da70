package gbdt

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// friedman returns samples of Friedman's first benchmark function (1991) of five features. The others are
// uninformative.
func friedman(rows, features int, seed uint64) *Data {
	rng := rand.New(rand.NewPCG(seed, 0))
	d := &Data{}
	for f := range features {
		d.Features = append(d.Features, fmt.Sprintf("x%d", f))
	}
	for range rows {
		x := make([]float32, features)
		for f := range x {
			x[f] = rng.Float32()
		}
		y := 10*math.Sin(math.Pi*float64(x[0]*x[1])) + 20*math.Pow(float64(x[2])-0.5, 2) + 10*float64(x[3]) + 5*float64(x[4])
		d.Rows = append(d.Rows, x...)
		d.Labels = append(d.Labels, float32(y/30))
	}
	return d
}

func train(t testing.TB, d *Data, loss Loss, p Params, from *Model) *Model {
	t.Helper()
	m, err := Train(context.Background(), d, loss, p, from)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func predict(t testing.TB, m *Model, rows []float32) []float64 {
	t.Helper()
	p, err := NewPredictor(m)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Predict(rows)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// unexplained returns the fraction of the labels' variance that predictions do not explain.
func unexplained(d *Data, predictions []float64) float64 {
	mean := Squared{}.Start(d)
	var left, all float64
	for i, y := range d.Labels {
		left += math.Pow(float64(y)-predictions[i], 2)
		all += math.Pow(float64(y)-mean, 2)
	}
	return left / all
}

// ordered returns the fraction of pairs within groups whose predictions are in the order of their labels.
func ordered(d *Data, predictions []float64) float64 {
	var right, pairs, begin int
	for _, n := range d.Groups {
		for i := begin; i < begin+n; i++ {
			for j := begin; j < i; j++ {
				pairs++
				if (d.Labels[i] < d.Labels[j]) == (predictions[i] < predictions[j]) {
					right++
				}
			}
		}
		begin += n
	}
	return float64(right) / float64(pairs)
}

func TestRegressionLearnsAFunction(t *testing.T) {
	d, held := friedman(4000, 20, 1), friedman(1000, 20, 2)
	m := train(t, d, Squared{}, DefaultParams(), nil)
	if u := unexplained(held, predict(t, m, held.Rows)); u > 0.05 {
		t.Errorf("%.3f of the variance of rows it has not seen is unexplained", u)
	}
}

// TestRankingLearnsAnOrder uses groups with different offsets, which an order within groups must ignore.
func TestRankingLearnsAnOrder(t *testing.T) {
	shifted := func(d *Data) *Data {
		for begin := 0; begin < d.NumRows(); begin += 100 {
			d.Groups = append(d.Groups, 100)
			for i := begin; i < begin+100; i++ {
				d.Labels[i] += float32(begin % 700)
			}
		}
		return d
	}
	d, held := shifted(friedman(4000, 20, 1)), shifted(friedman(1000, 20, 2))
	p := DefaultParams()
	p.MinWeight = 1e-2
	m := train(t, d, Rank{}, p, nil)
	if o := ordered(held, predict(t, m, held.Rows)); o < 0.93 {
		t.Errorf("only %.3f of the pairs are in order", o)
	}
}

// TestModelDependsOnTheSeedAlone uses different numbers of processors.
func TestModelDependsOnTheSeedAlone(t *testing.T) {
	d := friedman(500, 10, 1)
	text := func(seed uint64, workers int) string {
		p := DefaultParams()
		p.Trees, p.RowFraction, p.FeatureFraction, p.Seed, p.Workers = 10, 0.7, 0.5, seed, workers
		var b bytes.Buffer
		if err := train(t, d, Rank{}, p, nil).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one := text(1, 1)
	if one != text(1, 4) {
		t.Error("four processors grow other trees than one")
	}
	if one == text(2, 1) {
		t.Error("another seed grows the same trees")
	}
}

// TestContinuing checks that additional trees explain residuals.
func TestContinuing(t *testing.T) {
	d := friedman(1000, 10, 1)
	p := DefaultParams()
	p.Trees = 20
	first := train(t, d, Squared{}, p, nil)
	before := unexplained(d, predict(t, first, d.Rows))
	second := train(t, d, Squared{}, p, first)
	p.Trees = 40
	whole := train(t, d, Squared{}, p, nil)
	if len(first.Trees) != 20 || len(second.Trees) != 40 {
		t.Fatalf("%d and %d trees", len(first.Trees), len(second.Trees))
	}
	after, want := unexplained(d, predict(t, second, d.Rows)), unexplained(d, predict(t, whole, d.Rows))
	if after >= before || math.Abs(after-want) > 1e-6 {
		t.Errorf("unexplained %v, then %v; in one go %v", before, after, want)
	}
	d.Features = append([]string{"other"}, d.Features[1:]...)
	if _, err := Train(context.Background(), d, Squared{}, p, first); err == nil || !strings.Contains(err.Error(), "train a new model") {
		t.Errorf("a model of other features is continued: %v", err)
	}
}

// TestPredictorPredictsWhatTheTreesSay checks that the library and the trees branch alike at every threshold.
func TestPredictorPredictsWhatTheTreesSay(t *testing.T) {
	d := friedman(500, 10, 1)
	for i := range d.Rows {
		d.Rows[i] = float32(math.Round(float64(d.Rows[i]) * 8)) // few values, so that rows are close to thresholds
	}
	m := train(t, d, Squared{}, DefaultParams(), nil)
	for i, got := range predict(t, m, d.Rows) {
		if want := m.predict(d.row(i)); got != want {
			t.Fatalf("row %d: %v instead of %v", i, got, want)
		}
	}
}

func TestTaskOfEqualLabelsMakesALeaf(t *testing.T) {
	d := &Data{Features: []string{"x"}, Rows: []float32{1, 2, 3}, Labels: []float32{5, 5, 5}}
	m := train(t, d, Squared{}, DefaultParams(), nil)
	if got := predict(t, m, []float32{7})[0]; math.Abs(got-5) > 1e-12 {
		t.Errorf("%v instead of 5", got)
	}
	constant := &Data{Features: []string{"x", "y"}, Rows: []float32{1, 2, 1, 2}, Labels: []float32{0, 1}}
	p := DefaultParams()
	p.L2, p.LearningRate = 0, 1
	if got := predict(t, train(t, constant, Squared{}, p, nil), constant.Rows)[1]; got != 0.5 {
		t.Errorf("features of one value: %v instead of the mean", got)
	}
}

// TestWeightCountsRows checks that a row of weight two equals two rows.
func TestWeightCountsRows(t *testing.T) {
	weighted := friedman(200, 5, 1)
	twice := friedman(200, 5, 1)
	for i := range 200 {
		weighted.Weights = append(weighted.Weights, float32(1+i%2))
		if i%2 == 1 {
			twice.Rows = append(twice.Rows, twice.row(i)...)
			twice.Labels = append(twice.Labels, twice.Labels[i])
		}
	}
	p := DefaultParams()
	p.Trees, p.Leaves = 1, 2
	a, b := train(t, weighted, Squared{}, p, nil), train(t, twice, Squared{}, p, nil)
	if x, y := a.Trees[0].Nodes[0], b.Trees[0].Nodes[0]; x.Feature != y.Feature || math.Abs(x.Value-y.Value) > 1e-9 || math.Abs(x.Weight-y.Weight) > 1e-9 {
		t.Errorf("%+v\ninstead of\n%+v", x, y)
	}
}

func TestBadDataIsNamed(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		data Data
		want string
	}{
		{Data{Features: []string{"x"}, Rows: []float32{nan}, Labels: []float32{1}}, `row 0: feature "x" is NaN`},
		{Data{Features: []string{"x"}, Rows: []float32{1}, Labels: []float32{nan}}, "row 0: the label is NaN"},
	} {
		if _, err := Train(context.Background(), &c.data, Squared{}, DefaultParams(), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
}

// TestBins checks that each value is in its bin, and that bins have similar numbers of distinct values.
func TestBins(t *testing.T) {
	d := friedman(3000, 5, 1)
	b := bin(d, 1)
	var rows [maxBins]int
	for i := range d.NumRows() {
		v, at := d.row(i)[0], int(b.columns[0][i])
		rows[at]++
		if at > 0 && float64(v) <= b.bounds[0][at-1] || at < len(b.bounds[0]) && float64(v) > b.bounds[0][at] {
			t.Fatalf("%v lies in bin %d", v, at)
		}
	}
	for at, n := range rows {
		if n < 6 || n > 3000/maxBins+2 {
			t.Errorf("bin %d has %d rows", at, n)
		}
	}
}
