package records_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestSchedulesMultiplicationsAreAShare checks that a tuner's value for an algorithm's savings is at most 1, as the
// displayed limits require.
func TestSchedulesMultiplicationsAreAShare(t *testing.T) {
	for share, fits := range map[float64]bool{0: true, 0.25: true, 1: true, 1.5: false, -0.1: false, math.Inf(1): false, math.NaN(): false} {
		r := storetest.Record("cpu", "conv", 1, 0.004)
		r.Measurement.Candidate.Multiplications = share
		if err := records.Validate(r); errors.Is(err, records.ErrInvalid) == fits {
			t.Errorf("%v: %v", share, err)
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
		r := storetest.Record("t", "w", 1, 1)
		r.Measurement.At = timestamppb.New(time.Unix(1, 0))
		edit(r.Measurement)
		if records.Validate(r) == nil {
			t.Errorf("%s: valid", name)
		}
	}
}

func TestRecordOfNoLevelIsRefused(t *testing.T) {
	r := storetest.Record("cpu", "conv", 1, 1)
	r.Measurement.Candidate.Numerics = "wild"
	if err := records.Validate(r); !errors.Is(err, records.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestImplausibleMeasurementIsRefused covers imports: a latency agrees with its samples and its interval, no kernel
// takes less than a call, and no measurement is from the future.
func TestImplausibleMeasurementIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*tilthv1.Measurement)
		fits bool
	}{
		"none":     {func(m *tilthv1.Measurement) { m.SamplesSeconds = []float64{1, 2, 3} }, true},
		"rounded":  {func(m *tilthv1.Measurement) { m.SamplesSeconds, m.LatencySeconds = []float64{1, 2, 3}, 2.0001 }, true},
		"instant":  {func(m *tilthv1.Measurement) { m.SamplesSeconds, m.LatencySeconds = []float64{1e-30}, 1e-30 }, false},
		"sample":   {func(m *tilthv1.Measurement) { m.SamplesSeconds = []float64{1e-30, 2, 3} }, false},
		"fastest":  {func(m *tilthv1.Measurement) { m.SamplesSeconds, m.LatencySeconds = []float64{1, 2, 3}, 1 }, false},
		"below":    {func(m *tilthv1.Measurement) { m.SamplesSeconds, m.LatencySeconds = []float64{1, 2, 3}, 0.5 }, false},
		"interval": {func(m *tilthv1.Measurement) { m.Interval = &tilthv1.Interval{LowSeconds: 3, HighSeconds: 4} }, false},
		"clocks":   {func(m *tilthv1.Measurement) { m.At = timestamppb.New(time.Now().Add(time.Hour)) }, true},
		"future":   {func(m *tilthv1.Measurement) { m.At = timestamppb.New(time.Now().AddDate(0, 0, 3)) }, false},
		"far":      {func(m *tilthv1.Measurement) { m.At = timestamppb.New(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) }, false},
	} {
		r := storetest.Record("cpu", "conv", 1, 2)
		c.edit(r.Measurement)
		if err := records.Admit(r); errors.Is(err, records.ErrInvalid) == c.fits || err != nil && c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPreferencesDoNotTravel checks that a record from elsewhere ranks by its latency.
func TestPreferencesDoNotTravel(t *testing.T) {
	r, ok := records.Prefer(storetest.Record("cpu", "conv", 1, 2), storetest.Record("cpu", "conv", 2, 1.5).GetMeasurement(), time.Now(), "as fast within a model")
	if !ok || records.Cost(r.GetMeasurement()) >= 1.5 {
		t.Fatalf("preferred: %v, %v", ok, r)
	}
	if err := records.Admit(r); err != nil || records.Cost(r.GetMeasurement()) != 2 || r.GetMeasurement().GetPreferredTo() != "" {
		t.Errorf("admitted as %v, %v", r, err)
	}
	if _, ok := records.Prefer(r, storetest.Record("cpu", "conv", 2, 0.9).GetMeasurement(), time.Now(), "twice as slow"); ok {
		t.Error("a candidate that takes more than twice the time is preferred")
	}
}

// TestNoLatencyBeatsTheMachine checks latencies against a workload's operations, and a machine's measured rate, which
// is of float32 and may be half of the true one.
func TestNoLatencyBeatsTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		latency, share, flop, peak float64
		numerics                   string
		fits                       bool
	}{
		"honest":               {1e-3, 1, 1e9, 0.9e-3, "default", true},
		"beyond the machine":   {1e-4, 1, 1e9, 0.9e-3, "default", false},
		"fewer bits":           {2e-4, 1, 1e9, 0.9e-3, "fast", true},
		"far beyond":           {1e-6, 1, 1e9, 0.9e-3, "fast", false},
		"Winograd":             {3e-4, 0.25, 1e9, 0.9e-3, "default", true},
		"a share of nothing":   {1e-5, 1e-30, 1e9, 0.9e-3, "default", false},
		"an unknown share":     {1e-4, 0, 1e9, 0.9e-3, "default", true},
		"unknown and too fast": {1e-5, 0, 1e9, 0.9e-3, "default", false},
		"strict":               {1e-5, 0, 1e9, 0.9e-3, "strict", false},
		"beyond any machine":   {9e-9, 1, 1e9, 0, "default", false},
	} {
		m := storetest.Record("cpu", "conv", 1, c.latency).GetMeasurement()
		m.Candidate.Multiplications, m.Candidate.Numerics = c.share, c.numerics
		if err := records.ValidateRate(m, c.flop, c.peak); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
