package costmodel

import "testing"

// BenchmarkTrain trains a model with the number of samples of a typical history.
func BenchmarkTrain(b *testing.B) {
	samples := made(200, 60, 1)
	for b.Loop() {
		trained(b, nil, samples, Options{Seed: 1})
	}
}

// BenchmarkTimes predicts the times of 10,000 candidates.
func BenchmarkTimes(b *testing.B) {
	m, rows := trained(b, nil, made(40, 60, 1), Options{Seed: 1}), featuresOf(made(10, 1000, 2))
	for b.Loop() {
		if _, err := m.Times(rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "predictions/s")
}
