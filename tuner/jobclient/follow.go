package jobclient

import (
	"context"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// FollowHooks holds callbacks that Follow calls after it has tallied an event. Each may be nil. Follow returns
// the error of a callback.
type FollowHooks struct {
	// Event is called with each event.
	Event func(*tilthv1.JobEvent) error
	// Status is called with the job's status before it is tallied.
	Status func(*tilthv1.JobStatus)
	// Changed is called after the tally has changed.
	Changed func()
	// Restored is called if the tracker's records were restored from a backup, before the job's history is read again.
	Restored func() error
}

// Follow tallies a job's events from the tally's last one to the job's end, across restarts of the tracker.
// When the job's model was read, Follow adds its tasks to j and the tally.
func Follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	for {
		err := follow(ctx, c, j, tally, h)
		if !agent.History(err) {
			return err
		}
		*tally = *progress.NewTally(j, References(j.GetSpec()))
		if h.Restored != nil {
			if err := h.Restored(); err != nil {
				return err
			}
		}
	}
}

func follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	changed := func() {
		if h.Changed != nil {
			h.Changed()
		}
	}
	return c.WatchStatus(ctx, &tilthv1.WatchJobRequest{JobId: j.GetId(), FromSequence: uint64(tally.Events) + 1}, func(event *tilthv1.JobEvent) error {
		tally.Add(event)
		if err := learnTasks(ctx, c, j, tally); err != nil {
			return err
		}
		changed()
		if h.Event == nil {
			return nil
		}
		return h.Event(event)
	}, func(status *tilthv1.JobStatus) error {
		if h.Status != nil {
			h.Status(status)
		}
		tally.Status, tally.StatusAt = status, time.Now()
		changed()
		return nil
	})
}

// learnTasks fetches the tasks of a job's model after it was read.
func learnTasks(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) error {
	if j.GetSpec().GetModel() == nil || len(tally.Tasks) > 0 || tally.State == tilthv1.JobState_JOB_STATE_READING {
		return nil
	}
	now, err := c.Job(ctx, j.GetId())
	if err != nil {
		return err
	}
	j.Spec, j.Progress = now.GetSpec(), now.GetProgress()
	tally.Begin(j, References(j.GetSpec()))
	return nil
}
