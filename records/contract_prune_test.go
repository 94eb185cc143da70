package records_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// pruningKeepsWhatItSays checks the guarantees of Prune on random records.
func pruningKeepsWhatItSays(t *testing.T, k storeKind) {
	rapid.Check(t, func(t *rapid.T) {
		dir := k.folder(t)
		db := k.opened(t, dir)
		w := &records.Write{}
		w.PutNew("open", []byte("r"), records.EncodeJob(&tilthv1.JobSpec{}, nil))
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "open", State: tilthv1.JobState_JOB_STATE_RUNNING}})
		all := drawRecords(t, w)
		if err := db.Commit(w).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		best := bestOfAll(t, db)
		opts := records.PruneOptions{KeepBest: rapid.IntRange(0, 4).Draw(t, "best"), KeepRecent: rapid.IntRange(0, 4).Draw(t, "recent")}
		removed, kept, err := db.Prune(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]bool{}
		err = db.List(t.Context(), "", "", func(r *tilthv1.Record) error {
			left[identity(r)] = true
			return nil
		})
		if err != nil || len(left) != int(kept) || len(all) != int(kept+removed) {
			t.Fatalf("%d of %d records are left, %v; %d were removed and %d kept", len(left), len(all), err, removed, kept)
		}
		if now := bestOfAll(t, db); !slices.Equal(now, best) {
			t.Fatalf("the best were %v, and are %v", best, now)
		}
		if again, stayed, err := db.Prune(t.Context(), opts); again != 0 || stayed != kept || err != nil {
			t.Fatalf("a second time %d more were removed, %v", again, err)
		}
		for _, r := range mustStay(all, opts) {
			if !left[identity(r)] {
				t.Fatalf("%v is gone", r)
			}
		}
	})
}

// drawRecords adds random records of two workloads and few candidates, some failed, some of an open job.
func drawRecords(t *rapid.T, w *records.Write) (all []*tilthv1.Record) {
	for second := range int64(rapid.IntRange(0, 40).Draw(t, "records")) {
		r := storetest.Record("cpu", rapid.SampledFrom([]string{"conv", "pool"}).Draw(t, "workload"), second+1, float64(rapid.IntRange(0, 9).Draw(t, "latency")))
		trace := fmt.Appendf(nil, "candidate %d", rapid.IntRange(0, 6).Draw(t, "candidate"))
		c := r.Measurement.Candidate
		c.Trace, c.Digest = trace, records.Digest(trace)
		c.Numerics = rapid.SampledFrom([]string{"strict", "default", "fast"}).Draw(t, "numerics")
		r.JobId = rapid.SampledFrom([]string{"", "open", "ended"}).Draw(t, "job")
		all = append(all, r)
		w.AddRecord(r)
	}
	return all
}

func identity(r *tilthv1.Record) string {
	return fmt.Sprint(r.GetWorkloadDigest(), r.GetMeasurement().GetAt().GetSeconds())
}

func bestOfAll(t *rapid.T, db records.Store) (best []string) {
	for _, workload := range []string{"conv", "pool"} {
		for _, level := range []string{"strict", "default", "fast"} {
			r, err := db.BestAllowed("cpu", records.Digest([]byte(workload)), level)
			if err != nil && !errors.Is(err, records.ErrNotFound) {
				t.Fatal(err)
			}
			best = append(best, identity(r))
		}
	}
	return best
}

// mustStay returns the records that options and open jobs protect.
func mustStay(all []*tilthv1.Record, opts records.PruneOptions) (out []*tilthv1.Record) {
	for _, workload := range []string{"conv", "pool"} {
		var group, verified []*tilthv1.Record
		refuted := map[string]bool{}
		for _, r := range all {
			if string(r.GetWorkload()) == workload {
				group = append(group, r)
				refuted[r.GetMeasurement().GetCandidate().GetDigest()] = refuted[r.GetMeasurement().GetCandidate().GetDigest()] || records.Disqualifies(r.GetMeasurement())
			}
		}
		for i, r := range group {
			if i >= len(group)-opts.KeepRecent || r.GetJobId() == "open" {
				out = append(out, r)
			}
			if r.GetMeasurement().GetLatencySeconds() > 0 && !refuted[r.GetMeasurement().GetCandidate().GetDigest()] {
				verified = append(verified, r)
			}
		}
		slices.SortStableFunc(verified, func(a, b *tilthv1.Record) int {
			return int(a.GetMeasurement().GetLatencySeconds() - b.GetMeasurement().GetLatencySeconds())
		})
		out = append(out, verified[:min(len(verified), opts.KeepBest)]...)
	}
	return out
}

func aPrunedRecordLeavesItsEvent(t *testing.T, k storeKind) {
	db := fresh(t, k)
	w := &records.Write{}
	w.PutNew("job", []byte("r"), records.EncodeJob(&tilthv1.JobSpec{}, nil))
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "job", State: tilthv1.JobState_JOB_STATE_DONE}})
	var trials []*tilthv1.JobEvent
	for i := range uint64(2) {
		trials = append(trials, &tilthv1.JobEvent{Sequence: i + 1, Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			Measurement: storetest.Record("cpu", "conv", int64(i)+1, float64(i)+1).GetMeasurement(), BestSeconds: 1,
		}}})
	}
	w.AppendTrials("job", "cpu", &tilthv1.TaskSpec{WorkloadDigest: "conv"}, trials)
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if removed, kept, err := db.Prune(t.Context(), records.PruneOptions{}); removed != 1 || kept != 1 || err != nil {
		t.Fatalf("removed %d, kept %d, %v", removed, kept, err)
	}
	events, err := db.Events("job", 1, 10)
	if err != nil || len(events) != 2 || events[0].GetTrial().GetMeasurement() == nil || events[1].GetTrial().GetMeasurement() != nil || events[1].GetTrial().GetBestSeconds() != 1 {
		t.Errorf("events %v, %v", events, err)
	}
}
