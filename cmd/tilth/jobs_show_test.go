package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestShowJobToleratesWrongTaskIndices is a regression test: invalid task indices from a tracker crashed the command.
func TestShowJobToleratesWrongTaskIndices(t *testing.T) {
	view := newJobView(&tilthv1.Job{
		Id: "job-00000001", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv"}}},
		Progress:    []*tilthv1.TaskProgress{{Trials: 1}, {Trials: 2}},
		DeadLetters: []*tilthv1.DeadLetter{{BatchId: "b", TaskIndex: 1<<32 - 1}},
	})
	var out strings.Builder
	if err := view.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"conv", "unknown task 4294967295"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestShowJobReportsPausesAndDeadLetters(t *testing.T) {
	view := newJobView(&tilthv1.Job{
		Id: "job-00000001", Spec: &tilthv1.JobSpec{Priority: 30, Tasks: []*tilthv1.TaskSpec{{Name: "conv"}}},
		State: tilthv1.JobState_JOB_STATE_PAUSED, Reason: "lunch", PausedAt: timestamppb.New(time.Unix(0, 0)),
		DeadLetters: []*tilthv1.DeadLetter{{
			BatchId: "job-00000001.00000003", Error: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, Message: "the board is off", Attempts: 4,
			Agents: []string{"board-1", "board-2"},
		}},
	})
	view.Outage = &outageView{Since: "12:00", Until: "12:02", Silent: 6, Agents: 8}
	var out strings.Builder
	if err := view.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"priority:  30", "state:     paused", "paused:    1970-01-01T00:00:00Z",
		"outage:    6 of 8 agents fell silent at 12:00; the tracker waits for them until 12:02",
		"'tilth jobs retry job-00000001'", "device_infra         4  board-1, board-2  the board is off",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestClosedJobShowsNoCandidatesInFlight(t *testing.T) {
	j := &tilthv1.Job{
		Id: "job-00000001", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv"}}},
		State: tilthv1.JobState_JOB_STATE_RUNNING, Progress: []*tilthv1.TaskProgress{{Trials: 3, Proposed: 8}},
	}
	if got := newJobView(j).TaskProgress[0].InFlight; got != 5 {
		t.Errorf("%d candidates of an open job are in flight, want 5", got)
	}
	j.State, j.EndedAt = tilthv1.JobState_JOB_STATE_CANCELLED, timestamppb.New(time.Unix(0, 0))
	if got := newJobView(j).TaskProgress[0].InFlight; got != 0 {
		t.Errorf("%d candidates of a closed job are in flight", got)
	}
}

func TestShowJobReportsWaitAndTimeSpent(t *testing.T) {
	view := newJobView(&tilthv1.Job{
		Id: "job-00000001", State: tilthv1.JobState_JOB_STATE_RUNNING, TimeSpent: durationpb.New(70 * time.Second),
		Spec: &tilthv1.JobSpec{Budget: &tilthv1.Budget{Time: durationpb.New(10 * time.Minute)}},
		Wait: &tilthv1.Wait{
			Reason: tilthv1.WaitReason_WAIT_REASON_CORDONED, Message: "board is cordoned", Since: timestamppb.New(time.Unix(0, 0)), NothingCanRun: true,
		},
	})
	var out, data strings.Builder
	if err := errors.Join(view.write(&out), writeJSON(&data, view)); err != nil {
		t.Fatal(err)
	}
	for text, wanted := range map[string][]string{
		out.String():  {"waiting:   since 1970-01-01T00:00:00Z: board is cordoned", "time:      1:10 of 10:00"},
		data.String(): {`"reason": "cordoned"`, `"nothing_can_run": true`, `"time_spent_s": 70`, `"time_budget_s": 600`},
	} {
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
}

// TestMissingTimesAreNotShownAs1970 is a regression test: damaged rows were shown with the date 1970.
func TestMissingTimesAreNotShownAs1970(t *testing.T) {
	if row := newJobRow(&tilthv1.Job{Id: "j"}); row.Created != "" || row.Started != "" || row.Ended != "" {
		t.Errorf("got %+v", row)
	}
}
