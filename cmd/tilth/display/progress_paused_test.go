package display

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

func TestDisplaysReportPausesAndDeadLetters(t *testing.T) {
	job := &tilthv1.Job{CreatedAt: timestamppb.New(began), Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv"}}}}
	state := func(s tilthv1.JobState) *tilthv1.JobEvent {
		return &tilthv1.JobEvent{Event: &tilthv1.JobEvent_State{State: &tilthv1.JobStateChanged{State: s}}}
	}
	paused, running := state(tilthv1.JobState_JOB_STATE_PAUSED), state(tilthv1.JobState_JOB_STATE_RUNNING)
	dead := &tilthv1.JobEvent{Event: &tilthv1.JobEvent_DeadLetter{DeadLetter: &tilthv1.DeadLetter{}}}
	retried := &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Retried{Retried: &tilthv1.BatchRetried{}}}
	tally := progress.NewTally(job, nil)
	for _, step := range []struct {
		event *tilthv1.JobEvent
		part  string
		want  bool
	}{
		{running, "paused", false},
		{paused, "paused", true},
		{running, "paused", false},
		{dead, "given up: 1 batches", true},
		{retried, "given up: 1 batches", false},
	} {
		tally.Add(step.event)
		if parts := take(tally).parts(Budget{}, 0); slices.Contains(parts, step.part) != step.want {
			t.Errorf("after %v it says %q, and %q in it is not %v", step.event, parts, step.part, step.want)
		}
	}
}
