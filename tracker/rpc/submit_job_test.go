package rpc

import (
	"context"
	"fmt"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestKnownRecordsAreLookedUpOncePerWorkload is a regression test: a submission of 4.4 MiB counted the records of one
// workload once per task, which took 17 s of processor time.
func TestKnownRecordsAreLookedUpOncePerWorkload(t *testing.T) {
	const recorded, tasks = 1000, 20_000
	looked := 0
	k := recordLookup{spec: &tilthv1.JobSpec{}, left: 3 * recorded, seen: map[[2]string]records.Known{},
		look: func(_, _, _, _ string, limit int) (records.Known, error) {
			n := min(recorded, limit)
			looked += n
			return records.Known{Trials: n}, nil
		}}
	for range tasks {
		if known, err := k.find(&tilthv1.TaskSpec{WorkloadDigest: "same"}); err != nil || known.Trials != recorded {
			t.Fatalf("%d trials are known, %v", known.Trials, err)
		}
	}
	if looked != recorded {
		t.Errorf("looked at %d records for %d tasks of one workload with %d", looked, tasks, recorded)
	}
	for n := range tasks {
		if known, err := k.find(&tilthv1.TaskSpec{WorkloadDigest: fmt.Sprint(n)}); err != nil || known.Trials == 0 {
			t.Fatalf("%d trials are known, %v", known.Trials, err)
		}
	}
	if limit := 3*recorded + tasks; looked > limit {
		t.Errorf("looked at %d records, want at most %d", looked, limit)
	}
}

// TestCancelledSubmissionStopsLookUps is a regression test: look-ups continued after their client had
// given up.
func TestCancelledSubmissionStopsLookUps(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := firstProgress(ctx, nil, &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{}}}); err == nil {
		t.Error("look-ups continued")
	}
}
