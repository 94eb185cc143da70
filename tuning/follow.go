package tuning

import (
	"context"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuning/job"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// Hearing is told what happens to a job, after it was tallied. Each may be nil; an error of one ends the following.
type Hearing struct {
	// Event hears each event.
	Event func(*tilthv1.JobEvent) error
	// Status hears how the job stands, before it is tallied.
	Status func(*tilthv1.JobStatus)
	// Changed hears that the tally is another.
	Changed func()
	// Restored hears that the tracker's records were restored from a backup: the job's history is read anew.
	Restored func() error
}

// Follow tallies a job's events from those that the tally has to the last, through restarts of the tracker. The tasks
// of a model are j's and the tally's once it was read.
func Follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally, h Hearing) error {
	for {
		err := follow(ctx, c, j, tally, h)
		if !agent.History(err) {
			return err
		}
		*tally = *trials.NewTally(j, job.References(j.GetSpec()))
		if h.Restored != nil {
			if err := h.Restored(); err != nil {
				return err
			}
		}
	}
}

func follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally, h Hearing) error {
	changed := func() {
		if h.Changed != nil {
			h.Changed()
		}
	}
	return c.WatchStatus(ctx, j.GetId(), uint64(tally.Events)+1, func(event *tilthv1.JobEvent) error {
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

// learnTasks asks for the tasks of a job's model once it was read.
func learnTasks(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally) error {
	if j.GetSpec().GetModel() == nil || len(tally.Tasks) > 0 || tally.State == tilthv1.JobState_JOB_STATE_READING {
		return nil
	}
	now, err := c.Job(ctx, j.GetId())
	if err != nil {
		return err
	}
	j.Spec, j.Progress = now.GetSpec(), now.GetProgress()
	tally.Begin(j, job.References(j.GetSpec()))
	return nil
}
