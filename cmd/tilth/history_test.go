package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/cmd/tilth/display"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TestFollowCountsAReplacedHistoryOnce is a regression test: trials of the lost generation were counted and logged in
// addition to their replacements.
func TestFollowCountsAReplacedHistoryOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	job := &tilthv1.Job{Id: "j", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv", Weight: 1}}}}
	w := &follower{job: job, tally: progress.NewTally(job, nil), file: file, display: display.Quiet{Writer: t.Output()}}
	w.log = progress.NewLog(file, w.tally)
	event := &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
		Measurement: &tilthv1.Measurement{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, LatencySeconds: 1}, BestSeconds: 1,
	}}}
	add := func() {
		w.tally.Add(event)
		if err := w.log.Add(event); err != nil {
			t.Fatal(err)
		}
	}
	add()
	once, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	add()
	*w.tally = *progress.NewTally(job, nil) // as tuning.Follow does first
	if err := w.forget(); err != nil {
		t.Fatal(err)
	}
	add()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(once) || w.tally.Trials() != 1 || w.tally.Events != 1 {
		t.Errorf("%d trials of %d events are counted, and logged:\n%s%v", w.tally.Trials(), w.tally.Events, again, err)
	}
}

// TestMissingJobsAreNotReportedAsContinuing is a regression test: a job missing from a restored backup was reported as
// continuing.
func TestMissingJobsAreNotReportedAsContinuing(t *testing.T) {
	tune := &tuneCommand{}
	tune.tracker.addr = "farm:9190"
	gone := fmt.Errorf("watch job j: %w", status.Error(codes.NotFound, "job \"j\" does not exist"))
	if err := tune.abandon(t.Context(), t.Context(), nil, "j", gone); strings.Contains(err.Error(), "continues") || !strings.Contains(err.Error(), "submit it again") {
		t.Errorf("got %v", err)
	}
	if err := tune.abandon(t.Context(), t.Context(), nil, "j", errors.New("disk full")); !strings.Contains(err.Error(), "continues") {
		t.Errorf("got %v", err)
	}
}
