package main

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

func newJobs(a *app) *cobra.Command {
	return branch("jobs", "Submit, list, show, watch, pause and cancel a farm's jobs",
		newJobsSubmit(a), newJobsList(a), newJobsShow(a), newJobsWatch(a), newJobsCancel(a), newJobsPause(a), newJobsResume(a), newJobsRetry(a), newJobsOwners(a))
}

// clientFlags lead to a tracker.
type clientFlags struct {
	tracker trackerFlags
	level   logFlag
}

func (f *clientFlags) add(c *cobra.Command) {
	f.tracker.add(c, defaultTracker)
	f.level.add(c, slog.LevelWarn)
}

func (f *clientFlags) dial(a *app) (*client.Client, error) {
	return f.tracker.dial(f.level.logger(a.stderr))
}

// jobRow is a job in a listing.
type jobRow struct {
	Job         string `json:"job"`
	Name        string `json:"name"`
	Owner       string `json:"owner"`
	Priority    int    `json:"priority"`
	State       string `json:"state"`
	Reason      string `json:"reason"`
	Target      string `json:"target"`
	Tuner       string `json:"tuner"`
	Tasks       int    `json:"tasks"`
	Trials      int    `json:"trials"`
	DeadLetters int    `json:"dead_letters"`
	Created     string `json:"created_at"`
	Started     string `json:"started_at,omitempty"`
	Paused      string `json:"paused_at,omitempty"`
	Ended       string `json:"ended_at,omitempty"`
}

func newJobRow(j *tilthv1.Job) jobRow {
	spec := j.GetSpec()
	row := jobRow{
		Job: j.GetId(), Name: spec.GetName(), Owner: spec.GetOwner(), Priority: int(cmp.Or(spec.GetPriority(), tracker.DefaultPriority)), State: show.JobState(j.GetState()), Reason: j.GetReason(),
		Target: spec.GetTarget().GetFingerprint(), Tuner: spec.GetTuner(), Tasks: len(spec.GetTasks()),
		DeadLetters: len(j.GetDeadLetters()), Created: j.GetCreatedAt().AsTime().Format(time.RFC3339),
	}
	if j.GetStartedAt() != nil {
		row.Started = j.GetStartedAt().AsTime().Format(time.RFC3339)
	}
	if j.GetPausedAt() != nil {
		row.Paused = j.GetPausedAt().AsTime().Format(time.RFC3339)
	}
	if j.GetEndedAt() != nil {
		row.Ended = j.GetEndedAt().AsTime().Format(time.RFC3339)
	}
	for _, p := range j.GetProgress() {
		row.Trials += int(p.GetTrials())
	}
	return row
}
