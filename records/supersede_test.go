package records_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// measured is a verified measurement of a candidate at a second.
func measured(candidate string, second int64, ratio float64, samples ...float64) *tilthv1.Measurement {
	r := newRecord("t", "w", second, 1).GetMeasurement()
	r.Candidate = &tilthv1.Candidate{Trace: []byte(candidate), Digest: records.Digest([]byte(candidate))}
	r.SamplesSeconds, r.LatencySeconds, r.CalibrationRatio = samples, samples[0], ratio
	return r
}

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
		{"another, slower, of one in doubt", measured("b", 3, 1, times(20, 1.1)...), doubted(measured("a", 2, 1, long...)), false},
	} {
		if got := records.Supersedes(c.m, c.best); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestBestThatIsRefutedGivesWayToTheNext(t *testing.T) {
	db := openDB(t, t.TempDir()+"/r.db")
	record := func(second int64, latency float64, candidate, numerics string) *tilthv1.Record {
		r := newRecord("cpu-1", "conv", second, latency)
		r.Measurement.Candidate = &tilthv1.Candidate{Trace: []byte(candidate), Digest: records.Digest([]byte(candidate)), Numerics: numerics}
		return r
	}
	add(t, db, record(1, 3, "slow", "strict"), record(2, 1, "flaky", "fast"), record(3, 2, "good", "default"), record(4, 0, "flaky", "fast"))
	for level, want := range map[string]string{"strict": "slow", "default": "good", "fast": "good", "": "good"} {
		r, err := db.BestAllowed("cpu-1", records.Digest([]byte("conv")), level)
		if err != nil || string(r.GetMeasurement().GetCandidate().GetTrace()) != want {
			t.Errorf("%q: the best is %v, %v, want %s", level, r, err, want)
		}
	}
}

func TestRecordsWithBadIntervalsAreInvalid(t *testing.T) {
	for name, edit := range map[string]func(*tilthv1.Measurement){
		"crossed": func(m *tilthv1.Measurement) { m.Interval = &tilthv1.Interval{LowSeconds: 2, HighSeconds: 1} },
		"zero":    func(m *tilthv1.Measurement) { m.Interval = &tilthv1.Interval{} },
		"level": func(m *tilthv1.Measurement) {
			m.Interval = &tilthv1.Interval{LowSeconds: 1, HighSeconds: 2, Level: 1.5}
		},
		"calibration": func(m *tilthv1.Measurement) { m.CalibrationRatio = -1 },
	} {
		r := newRecord("t", "w", 1, 1)
		r.Measurement.At = timestamppb.New(time.Unix(1, 0))
		edit(r.Measurement)
		if records.Validate(r) == nil {
			t.Errorf("%s: valid", name)
		}
	}
}

// TestABestInDoubtStandsUntilItIsMeasuredAgain, however shortly, and also after the file was closed.
func TestABestInDoubtStandsUntilItIsMeasuredAgain(t *testing.T) {
	path := t.TempDir() + "/r.db"
	db := openDB(t, path)
	record := func(workload, device string, second int64, samples ...float64) *tilthv1.Record {
		r := newRecord("cpu-1", workload, second, 1)
		r.Measurement = measured("a", second, 1, samples...)
		r.Measurement.Device = device
		return r
	}
	best := func(workload string) *tilthv1.Measurement {
		t.Helper()
		r, err := db.Best("cpu-1", records.Digest([]byte(workload)))
		if err != nil {
			t.Fatal(err)
		}
		return r.GetMeasurement()
	}
	add(t, db, record("early", "board", 10, times(20, 1)...), record("late", "board", 20, times(20, 1)...), record("other", "board-2", 20, times(20, 1)...))
	var w records.Write
	w.SuspectBests("board", time.Unix(10, 0), "it changed")
	if err := db.Commit(&w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second from the file
		for workload, want := range map[string]string{"early": "", "late": "it changed", "other": ""} {
			if m := best(workload); m.GetSuspected() != want || m.GetLatencySeconds() != 1 {
				t.Errorf("the best of %s is %v", workload, m)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openDB(t, path)
	}
	for _, workload := range []string{"early", "late", "other"} {
		add(t, db, record(workload, "board-3", 30, times(5, 1.1)...))
	}
	for workload, want := range map[string]float64{"early": 1, "late": 1.1, "other": 1} {
		if m := best(workload); m.GetLatencySeconds() != want {
			t.Errorf("the best of %s, measured again, is %v", workload, m)
		}
	}
}
