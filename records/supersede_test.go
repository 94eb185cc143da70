package records_test

import (
	"slices"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storetest"
)

func doubted(m *tilthv1.Measurement) *tilthv1.Measurement {
	m.Suspected = "the device changed"
	return m
}

func times(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

func TestSupersedes(t *testing.T) {
	long, lone := times(20, 1), times(10, 1)
	for _, c := range []struct {
		name    string
		m, best *tilthv1.Measurement
		want    bool
	}{
		{"the first", storetest.Measured("a", 1, 1, 1), nil, true},
		{"faster", storetest.Measured("a", 1, 1, times(10, 0.9)...), storetest.Measured("b", 2, 1, lone...), true},
		{"slower", storetest.Measured("a", 2, 1, times(10, 1.1)...), storetest.Measured("b", 1, 1, lone...), false},
		{"equal", storetest.Measured("a", 2, 1, lone...), storetest.Measured("b", 1, 1, lone...), false},
		{"faster at the median, with noise", storetest.Measured("a", 2, 1, 0.9, 0.9, 20), storetest.Measured("b", 1, 1, lone...), true},
		{"its own, longer and slower", storetest.Measured("a", 2, 1, times(20, 1.5)...), storetest.Measured("a", 1, 1, lone...), true},
		{"its own, shorter and faster", storetest.Measured("a", 3, 1, times(10, 0.5)...), storetest.Measured("a", 2, 1, long...), false},
		{"its own, as long and later", storetest.Measured("a", 3, 1, times(20, 1.5)...), storetest.Measured("a", 2, 1, long...), true},
		{"its own, as long and earlier", storetest.Measured("a", 1, 1, times(20, 0.5)...), storetest.Measured("a", 2, 1, long...), false},
		{"its own, longer on a disturbed device", storetest.Measured("a", 2, 1.5, times(20, 1.5)...), storetest.Measured("a", 1, 1, lone...), false},
		{"its own, longer between calibrations that missed what disturbed it", storetest.Measured("a", 2, 1, times(20, 6.8)...), storetest.Measured("a", 1, 1, lone...), false},
		{"its own, shorter in peace", storetest.Measured("a", 2, 1, times(5, 0.9)...), storetest.Measured("a", 1, 1.5, long...), true},
		{"its own, dropped in peace", storetest.Measured("a", 2, 1, 0.9), storetest.Measured("a", 1, 1.5, long...), false},
		{"its own, shorter, of one in doubt", storetest.Measured("a", 3, 1, times(5, 1.1)...), doubted(storetest.Measured("a", 2, 1, long...)), true},
		{"another, slower, of one in doubt", storetest.Measured("b", 3, 1, times(20, 1.1)...), doubted(storetest.Measured("a", 2, 1, long...)), false},
	} {
		if got := records.Supersedes(c.m, c.best); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
