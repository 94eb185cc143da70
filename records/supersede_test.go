package records_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// measured returns a verified measurement of a candidate at a second. ratio is the calibration time relative to the
// best known.
func measured(candidate string, second int64, ratio float64, samples ...float64) *tilthv1.Measurement {
	r := storetest.Record("t", "w", second, 1).GetMeasurement()
	r.Candidate = &tilthv1.Candidate{Trace: []byte(candidate), Digest: records.Digest([]byte(candidate))}
	r.SamplesSeconds, r.LatencySeconds, r.CalibrationRatio = samples, samples[0], ratio
	return r
}

func doubted(m *tilthv1.Measurement) *tilthv1.Measurement {
	m.Suspected = "the device changed"
	return m
}

// preferredTo marks a measurement as preferred to another one.
func preferredTo(other, m *tilthv1.Measurement) *tilthv1.Measurement {
	r, ok := records.Prefer(&tilthv1.Record{Measurement: m}, other, m.GetAt().AsTime(), "as fast within a model")
	if !ok {
		panic("the preference is not valid")
	}
	return r.GetMeasurement()
}

func times(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

func TestSupersedes(t *testing.T) {
	long, lone := times(20, 1), times(10, 1)
	for _, c := range []struct {
		name    string
		m, best *tilthv1.Measurement
		want    bool
	}{
		{"the first", measured("a", 1, 1, 1), nil, true},
		{"faster", measured("a", 1, 1, times(10, 0.9)...), measured("b", 2, 1, lone...), true},
		{"slower", measured("a", 2, 1, times(10, 1.1)...), measured("b", 1, 1, lone...), false},
		{"equal", measured("a", 2, 1, lone...), measured("b", 1, 1, lone...), false},
		{"faster at the median, with noise", measured("a", 2, 1, 0.9, 0.9, 20), measured("b", 1, 1, lone...), true},
		{"its own, longer and slower", measured("a", 2, 1, times(20, 1.5)...), measured("a", 1, 1, lone...), true},
		{"its own, shorter and faster", measured("a", 3, 1, times(10, 0.5)...), measured("a", 2, 1, long...), false},
		{"its own, as long and later", measured("a", 3, 1, times(20, 1.5)...), measured("a", 2, 1, long...), true},
		{"its own, as long and earlier", measured("a", 1, 1, times(20, 0.5)...), measured("a", 2, 1, long...), false},
		{"its own, longer on a disturbed device", measured("a", 2, 1.5, times(20, 1.5)...), measured("a", 1, 1, lone...), false},
		{"its own, longer between calibrations that missed what disturbed it", measured("a", 2, 1, times(20, 6.8)...), measured("a", 1, 1, lone...), false},
		{"its own, shorter in peace", measured("a", 2, 1, times(5, 0.9)...), measured("a", 1, 1.5, long...), true},
		{"its own, dropped in peace", measured("a", 2, 1, 0.9), measured("a", 1, 1.5, long...), false},
		{"its own, shorter, of one in doubt", measured("a", 3, 1, times(5, 1.1)...), doubted(measured("a", 2, 1, long...)), true},
		{"slower, but preferred", preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...)), measured("b", 1, 1, lone...), true},
		{"its own, after it was preferred", measured("a", 3, 1, long...), preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...)), false},
		{"faster than the one that another was preferred to", measured("c", 3, 1, times(10, 0.9)...), preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...)), true},
		{"its rival, faster than before", measured("b", 3, 1, times(10, 0.9)...), preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...)), false},
		{"its rival, faster than one in doubt", measured("b", 3, 1, times(10, 0.9)...), doubted(preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...))), true},
		{"its own, after it was preferred and in doubt", measured("a", 3, 1, times(20, 1.1)...), doubted(preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...))), true},
		{"slower than that", measured("c", 3, 1, times(10, 1.05)...), preferredTo(measured("b", 1, 1, lone...), measured("a", 2, 1, times(10, 1.1)...)), false},
		{"another, slower, of one in doubt", measured("b", 3, 1, times(20, 1.1)...), doubted(measured("a", 2, 1, long...)), false},
	} {
		if got := records.Supersedes(c.m, c.best); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestBestTakesLittleEnergy checks the energy objective, which accepts longer latencies.
func TestBestTakesLittleEnergy(t *testing.T) {
	made := func(digest string, seconds, joules float64) *tilthv1.Measurement {
		return &tilthv1.Measurement{Candidate: &tilthv1.Candidate{Digest: digest}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
			LatencySeconds: seconds, SamplesSeconds: []float64{seconds}, EnergyJoules: joules}
	}
	fast, frugal := made("a", 1, 10), made("b", 2, 8)
	if !records.Supersedes(frugal, fast) || records.Supersedes(fast, frugal) {
		t.Error("what takes less energy is not better")
	}
	if !records.Supersedes(fast, records.Essentials(made("b", 2, 11))) {
		t.Error("a gist does not have the energy")
	}
	for _, c := range []struct {
		target string
		joules float64
		right  bool
	}{
		{"energy-cpu", 1, true}, {"energy-cpu", 0, false}, {"cpu", 1, false}, {"cpu", 0, true},
		{"energy-cpu", -1, false}, {"energy-cpu", math.Inf(1), false}, {"energy-cpu", math.NaN(), false},
	} {
		if err := records.ValidateEnergy(c.target, made("a", 1, c.joules)); (err == nil) != c.right {
			t.Errorf("%v J on %s: %v", c.joules, c.target, err)
		}
	}
	failed := &tilthv1.Measurement{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH}
	if err := records.ValidateEnergy("energy-cpu", failed); err != nil {
		t.Errorf("a failure: %v", err)
	}
}
