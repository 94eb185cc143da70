package records_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func bestIsTheFastestVerifiedRecord(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	storetest.Add(t, s,
		storetest.Record("cpu", "conv", 1, 0.3), storetest.Record("cpu", "conv", 2, 0.1), storetest.Record("cpu", "conv", 3, 0.2),
		storetest.Record("cpu", "conv", 4, 0), storetest.Record("cpu", "pool", 5, 0.7), storetest.Record("gpu", "conv", 6, 0.01), storetest.Record("cpu", "softmax", 7, 0))
	for range 2 {
		best, err := s.BestAllowed("cpu", records.Digest([]byte("conv")), "")
		if err != nil || !proto.Equal(best, storetest.Record("cpu", "conv", 2, 0.1)) {
			t.Errorf("best is %v, %v", best, err)
		}
		_, err = s.BestAllowed("cpu", records.Digest([]byte("softmax")), "")
		missing(t, "best of a workload that only failed", err)
		_, err = s.BestAllowed("cpu", records.Digest([]byte("none")), "")
		missing(t, "best of a workload that nobody knows", err)
		s = k.reopened(t, s, folder)
	}
}

func bestRecordsComeInPages(t *testing.T, k storeKind) {
	s := fresh(t, k)
	for _, target := range []string{"a", "b", "bb"} {
		for _, workload := range []string{"conv", "pool", "dense"} {
			storetest.Add(t, s, storetest.Record(target, workload, 1, 0.5), storetest.Record(target, workload, 2, 0.25))
		}
		storetest.Add(t, s, storetest.Record(target, "failed", 3, 0))
	}
	for target, want := range map[string]int{"": 9, "a": 3, "b": 3, "c": 0} {
		for _, most := range []int{1, 2, 100} {
			var all []string
			for after, first := "", true; first || after != ""; first = false {
				page, next, err := s.BestPage(target, after, most, 1<<20)
				if err != nil || len(page) > most {
					t.Fatalf("a page has %d records, %v", len(page), err)
				}
				for _, r := range page {
					if r.GetMeasurement().GetLatencySeconds() != 0.25 || len(r.GetWorkload()) == 0 {
						t.Errorf("the best is %v", r)
					}
					all = append(all, r.GetTarget()+"\x00"+r.GetWorkloadDigest())
				}
				after = next
			}
			if len(all) != want || !slices.IsSorted(all) || len(slices.Compact(all)) != want {
				t.Errorf("%q, %d at a time: %q, want %d", target, most, all, want)
			}
		}
	}
	if page, next, err := s.BestPage("", "", 100, 1); err != nil || len(page) != 1 || next == "" {
		t.Errorf("a page of few bytes has %d records, %q, %v", len(page), next, err)
	}
}

func aListGoesThroughAGroupInOrder(t *testing.T, k storeKind) {
	s := fresh(t, k)
	const n = 1300
	w := &records.Write{}
	for i := range int64(n) {
		w.AddRecord(storetest.Record("cpu", "conv", n-i, 1))
		w.AddRecord(storetest.Record("gpu", "conv", n-i, 1))
	}
	commit(t, s, w)
	got := storetest.List(t, s, "cpu", "")
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i, r := range got {
		if r.GetTarget() != "cpu" || r.GetMeasurement().GetAt().GetSeconds() != int64(i+1) {
			t.Fatalf("record %d is %v", i, r)
		}
		if hasWorkload := len(r.GetWorkload()) > 0; hasWorkload != (i == 0) {
			t.Fatalf("record %d has workload %q", i, r.GetWorkload())
		}
	}
	if got := storetest.List(t, s, "", records.Digest([]byte("conv"))); len(got) != 2*n {
		t.Errorf("%d records of the workload on every target, want %d", len(got), 2*n)
	}
	stop := errors.New("enough")
	if err := s.List(t.Context(), "", "", func(*tilthv1.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error came back as %v", err)
	}
}

// A device whose clock stands still may measure a candidate twice at the same instant.
func twoMeasurementsOfAnInstantAreTwo(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	for i := range uint64(2) {
		m := storetest.Record("cpu", "conv", 1, 0.5).GetMeasurement()
		m.Candidate.Trial = uint32(i)
		w.AppendTrials("job", "cpu", &tilthv1.TaskSpec{Name: "conv", WorkloadDigest: records.Digest([]byte("conv"))}, []*tilthv1.JobEvent{{
			Sequence: i + 1, Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{Measurement: m, BatchId: "job.0"}},
		}})
	}
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "job", State: tilthv1.JobState_JOB_STATE_RUNNING}})
	commit(t, s, w)
	if all := storetest.List(t, s, "", ""); len(all) != 2 || all[0].GetName() != "conv" {
		t.Errorf("records %v, want two of the task", all)
	}
	storetest.Add(t, s, storetest.Record("cpu", "conv", 1, 0.5))
	if n := len(storetest.List(t, s, "", "")); n != 2 {
		t.Errorf("%d records after one was added again", n)
	}
	events, err := s.Events("job", 1, 10)
	if err != nil || len(events) != 2 || events[1].GetTrial().GetMeasurement().GetCandidate().GetTrial() != 1 {
		t.Errorf("events %v, %v", events, err)
	}
}
