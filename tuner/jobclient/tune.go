package jobclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TuneOptions configures a job, its search and its progress reports.
type TuneOptions struct {
	// TuneOptions are the options of the job. Target and Machine are set from the device. Without a limit on
	// trials or time, the job runs until it is cancelled.
	Options
	DeviceChoice
	// WeightBits is the size of integer weights, 8 or 4; 0 keeps floats.
	WeightBits int64
	// Patience configures waiting for missing agents; the zero value disables it.
	Patience client.Patience
	// Progress, if set, is called after each change. It may use the tally until it returns.
	Progress func(*progress.Tally)
}

// Result is the result of tuning.
type Result struct {
	progress.Summary
	// Best holds the fastest verified record of each of the job's workloads, from any job, within Numerics.
	// Tasks without one are omitted.
	Best []*tilthv1.Record
}

// partingTime bounds the last calls of an abandoned job.
const partingTime = 10 * time.Second

// Tune tunes models on a farm and returns when the job has ended. If ctx ends, Tune cancels the job and
// returns the measurements so far with the cause. A failed job is an error, too.
func Tune(ctx context.Context, c *client.Client, sources []Source, o TuneOptions) (*Result, error) {
	j, err := Submit(ctx, c, Models(sources, o.Numerics, o.WeightBits), o.Options, o.DeviceChoice, o.patience())
	if err != nil {
		return nil, err
	}
	return Await(ctx, c, j, o.Progress)
}

func (o *TuneOptions) patience() *client.Patience {
	p := o.Patience
	if p.Report == nil {
		p.Report = func(string) {}
	}
	return &p
}

// Await follows a submitted job like Tune.
func Await(ctx context.Context, c *client.Client, j *tilthv1.Job, report func(*progress.Tally)) (*Result, error) {
	tally := progress.NewTally(j, References(j.GetSpec()))
	hearing := FollowHooks{}
	if report != nil {
		hearing.Changed = func() { report(tally) }
	}
	failure := Follow(ctx, c, j, tally, hearing)
	if failure == nil && ctx.Err() == nil {
		return ended(ctx, c, j, tally)
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer done()
	if failure == nil { // it ended before it could be cancelled
		return ended(last, c, j, tally)
	} else if ctx.Err() != nil {
		failure = errors.Join(context.Cause(ctx), end(last, c, j, tally, hearing))
	} else {
		return nil, failure
	}
	r, err := resultOf(last, c, j, tally)
	return r, errors.Join(failure, err)
}

// ended returns the result of a job that has ended by itself.
func ended(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) (*Result, error) {
	r, err := resultOf(ctx, c, j, tally)
	if err == nil && tally.State == tilthv1.JobState_JOB_STATE_FAILED {
		err = fmt.Errorf("job %s failed: %s", j.GetId(), tally.Reason)
	}
	return r, err
}

// end cancels a job and collects the remaining measurements.
func end(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	if _, err := c.Cancel(ctx, j.GetId(), "its client gave up"); err != nil {
		return fmt.Errorf("job %s continues: %w", j.GetId(), err)
	}
	return Follow(ctx, c, j, tally, h)
}

func resultOf(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) (*Result, error) {
	spec := j.GetSpec()
	r := &Result{Summary: tally.Summary()}
	r.Job, r.Target, r.Tracker = j.GetId(), spec.GetTarget().GetFingerprint(), c.Addr()
	var workloads []string
	for _, t := range spec.GetTasks() {
		workloads = append(workloads, t.GetWorkloadDigest())
	}
	var err error
	r.Best, err = c.BestRecords(ctx, r.Target, spec.GetNumerics(), workloads...)
	return r, err
}
