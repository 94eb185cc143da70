package records_test

import (
	"errors"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// withLevel returns a record whose schedule needs a level of numerics.
func withLevel(second int64, latency float64, level string) *tilthv1.Record {
	r := storetest.Record("cpu", "conv", second, latency)
	r.Measurement.Candidate.Numerics = level
	return r
}

// bestOfEachLevelOfNumerics adds records in several orders. Each level must have the fastest record that it allows.
func bestOfEachLevelOfNumerics(t *testing.T, k storeKind) {
	direct, older, winograd, half := withLevel(1, 4, "strict"), withLevel(2, 3, ""), withLevel(3, 1, "default"), withLevel(4, 0.5, "fast")
	slow := withLevel(5, 9, "default")
	for name, order := range map[string][]*tilthv1.Record{
		"slowest first": {slow, direct, older, winograd, half},
		"fastest first": {half, winograd, older, direct, slow},
		"mixed":         {older, half, direct, slow, winograd},
	} {
		t.Run(name, func(t *testing.T) {
			db := fresh(t, k)
			for _, r := range order {
				storetest.Add(t, db, r)
			}
			for level, want := range map[string]float64{"strict": 3, "default": 1, "fast": 0.5, "": 0.5} {
				got, err := db.BestAllowed("cpu", direct.GetWorkloadDigest(), level)
				if err != nil || got.GetMeasurement().GetLatencySeconds() != want {
					t.Errorf("%q: %v s, want %v, %v", level, got.GetMeasurement().GetLatencySeconds(), want, err)
				}
			}
		})
	}
}

func aLevelWithoutARecordHasNone(t *testing.T, k storeKind) {
	db := fresh(t, k)
	r := withLevel(1, 1, "default")
	storetest.Add(t, db, r)
	if _, err := db.BestAllowed("cpu", r.GetWorkloadDigest(), "strict"); !errors.Is(err, records.ErrNotFound) {
		t.Errorf("strict: %v", err)
	}
	if best, err := db.BestAllowed("cpu", r.GetWorkloadDigest(), ""); err != nil || best == nil {
		t.Errorf("any: %v", err)
	}
	if _, err := db.BestAllowed("cpu", r.GetWorkloadDigest(), "wild"); !errors.Is(err, records.ErrInvalid) {
		t.Errorf("wild: %v", err)
	}
}
