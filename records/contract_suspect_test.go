package records_test

import (
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func bestThatIsRefutedGivesWayToTheNext(t *testing.T, k storeKind) {
	db := fresh(t, k)
	record := func(second int64, latency float64, candidate, numerics string) *tilthv1.Record {
		r := storetest.Record("cpu-1", "conv", second, latency)
		r.Measurement.Candidate = &tilthv1.Candidate{Trace: []byte(candidate), Digest: records.Digest([]byte(candidate)), Numerics: numerics}
		return r
	}
	storetest.Add(t, db, record(1, 3, "slow", "strict"), record(2, 1, "flaky", "fast"), record(3, 2, "good", "default"), record(4, 0, "flaky", "fast"))
	for level, want := range map[string]string{"strict": "slow", "default": "good", "fast": "good", "": "good"} {
		r, err := db.BestAllowed("cpu-1", records.Digest([]byte("conv")), level)
		if err != nil || string(r.GetMeasurement().GetCandidate().GetTrace()) != want {
			t.Errorf("%q: the best is %v, %v, want %s", level, r, err, want)
		}
	}
}

// The best stays until it is measured again, however briefly, even across reopening.
func aBestInDoubtStandsUntilItIsMeasuredAgain(t *testing.T, k storeKind) {
	folder := k.folder(t)
	db := k.opened(t, folder)
	record := func(workload, device string, second int64, samples ...float64) *tilthv1.Record {
		r := storetest.Record("cpu-1", workload, second, 1)
		r.Measurement = measured("a", second, 1, samples...)
		r.Measurement.Device = device
		return r
	}
	best := func(workload string) *tilthv1.Measurement {
		t.Helper()
		r, err := db.BestAllowed("cpu-1", records.Digest([]byte(workload)), "")
		if err != nil {
			t.Fatal(err)
		}
		return r.GetMeasurement()
	}
	storetest.Add(t, db, record("early", "board", 10, times(20, 1)...), record("late", "board", 20, times(20, 1)...), record("other", "board-2", 20, times(20, 1)...))
	var w records.Write
	w.SuspectBests("board", time.Unix(10, 0), "it changed")
	if err := db.Commit(&w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time after reopening
		for workload, want := range map[string]string{"early": "", "late": "it changed", "other": ""} {
			if m := best(workload); m.GetSuspected() != want || m.GetLatencySeconds() != 1 {
				t.Errorf("the best of %s is %v", workload, m)
			}
		}
		db = k.reopened(t, db, folder)
	}
	for _, workload := range []string{"early", "late", "other"} {
		storetest.Add(t, db, record(workload, "board-3", 30, times(5, 1.1)...))
	}
	for workload, want := range map[string]float64{"early": 1, "late": 1.1, "other": 1} {
		if m := best(workload); m.GetLatencySeconds() != want {
			t.Errorf("the best of %s, measured again, is %v", workload, m)
		}
	}
}
