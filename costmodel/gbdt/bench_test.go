package gbdt

import "testing"

// BenchmarkTrain grows 100 trees of 31 leaves on 10,000 rows of 160 features.
func BenchmarkTrain(b *testing.B) {
	d := friedman(10000, 160, 1)
	for b.Loop() {
		train(b, d, Squared{}, DefaultParams(), nil)
	}
}

// BenchmarkPredict predicts 10,000 rows with 100 trees.
func BenchmarkPredict(b *testing.B) {
	d := friedman(10000, 160, 1)
	m := train(b, d, Squared{}, DefaultParams(), nil)
	p, err := NewPredictor(m)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Predict(d.Rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*d.NumRows())/b.Elapsed().Seconds(), "predictions/s")
}
