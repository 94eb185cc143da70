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

// TestASchedulesMultiplicationsAreAShare checks that a tuner's value for an algorithm's savings is at most 1, as the
// displayed limits require.
func TestASchedulesMultiplicationsAreAShare(t *testing.T) {
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

func TestARecordOfNoLevelIsRefused(t *testing.T) {
	r := storetest.Record("cpu", "conv", 1, 1)
	r.Measurement.Candidate.Numerics = "wild"
	if err := records.Validate(r); !errors.Is(err, records.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
