package stats

import "testing"

func TestSpearmanComparesOrders(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"same order", []float64{1, 2, 3, 4}, []float64{10, 20, 25, 100}, 1},
		{"opposite order", []float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{"all equal", []float64{1, 1, 1}, []float64{3, 2, 1}, 0},
		{"a tie", []float64{1, 2, 2, 3}, []float64{1, 2, 2, 3}, 1},
	} {
		if got := Spearman(c.a, c.b); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
