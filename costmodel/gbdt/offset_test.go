package gbdt

import (
	"math"
	"testing"
)

// TestResidualsOfOffsetsAreFitted checks for both losses that the model learns the part of a sum that the offsets
// lack.
func TestResidualsOfOffsetsAreFitted(t *testing.T) {
	for _, loss := range []Loss{Squared{}, Rank{Pairs: 16}} {
		d := friedman(600, 6, 1)
		d.Groups, d.Offsets = []int{200, 200, 200}, make([]float64, 600)
		for i := range d.Offsets {
			d.Offsets[i] = 8 * float64(i%7)
			d.Labels[i] += float32(d.Offsets[i])
		}
		learnt := predict(t, train(t, d, loss, DefaultParams(), nil), d.Rows)
		for i := range learnt {
			learnt[i] += d.Offsets[i]
		}
		if share := ordered(d, learnt); share < 0.97 {
			t.Errorf("%T: only %.3f of the pairs are in order", loss, share)
		}
	}
}

// TestInsignificantPairsAreIgnored checks that insignificant differences do not affect training.
func TestInsignificantPairsAreIgnored(t *testing.T) {
	d := friedman(200, 6, 1)
	for _, v := range predict(t, train(t, d, Rank{Apart: 10}, DefaultParams(), nil), d.Rows) {
		if v != 0 {
			t.Fatalf("a prediction is %v", v)
		}
	}
}

// TestSteeperLossNarrowsPredictions checks that a steeper loss separates pairs by smaller differences of predictions.
func TestSteeperLossNarrowsPredictions(t *testing.T) {
	d := friedman(400, 6, 1)
	spread := func(steepness float64) float64 {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, v := range predict(t, train(t, d, Rank{Steepness: steepness}, DefaultParams(), nil), d.Rows) {
			lo, hi = min(lo, v), max(hi, v)
		}
		return hi - lo
	}
	if flat, steep := spread(1), spread(8); !(steep < flat/2) {
		t.Errorf("predictions spread over %.2f, and over %.2f when the loss is eight times as steep", flat, steep)
	}
}

func TestModelIsScaledAndRaised(t *testing.T) {
	p := DefaultParams()
	p.Trees = 4
	d := friedman(100, 6, 1)
	m := train(t, d, Squared{}, p, nil)
	whole, first := predict(t, m, d.Rows), predict(t, m.Scaled(1, 0), d.Rows)
	half := predict(t, m.Scaled(1, 0.5).Raised(3), d.Rows)
	for i := range whole {
		if want := first[i] + (whole[i]-first[i])/2 + 3; math.Abs(half[i]-want) > 1e-9 {
			t.Fatalf("row %d: %v, want %v", i, half[i], want)
		}
	}
	if again := predict(t, m, d.Rows); again[0] != whole[0] {
		t.Error("the model itself was changed")
	}
	if none := (&Model{}); none.Raised(1) != none {
		t.Error("a model without trees was raised")
	}
}
