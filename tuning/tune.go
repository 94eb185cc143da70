package tuning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuning/job"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// Options say what a job may cost, how it searches, and who hears of it.
type Options struct {
	// Options are the job's. Target and Machine are the device's and need not be set; without a limit on trials or
	// time, the job ends when it is cancelled.
	job.Options
	Wish
	// WeightBits are those of the integers that weights are kept in, 8 or 4; 0 = as they are.
	WeightBits int64
	// Patience is for a farm that lacks a device, a builder or a tuner; the zero value is none.
	Patience client.Patience
	// Progress hears of each change. The tally is the caller's until Progress returns. nil = nobody.
	Progress func(*trials.Tally)
}

// Result is what tuning achieved.
type Result struct {
	trials.Summary
	// Best are the fastest verified records of the job's workloads, at most one each, whoever measured them. Tasks
	// that have none are left out. Numerics bound their algorithms.
	Best []*tilthv1.Record
}

// partingTime bounds the last calls of a job that nobody waits for any more.
const partingTime = 10 * time.Second

// Tune has a farm tune models, and returns when the job has ended. When ctx ends, Tune cancels the job and returns
// what was measured until then, together with the cause. A job that failed is an error, too.
func Tune(ctx context.Context, c *client.Client, sources []Source, o Options) (*Result, error) {
	j, err := Submit(ctx, c, Models(sources, o.Numerics, o.WeightBits), o.Options, o.Wish, o.patience())
	if err != nil {
		return nil, err
	}
	return Await(ctx, c, j, o.Progress)
}

func (o *Options) patience() *client.Patience {
	p := o.Patience
	if p.Tell == nil {
		p.Tell = func(string) {}
	}
	return &p
}

// Await follows a job that was submitted, as Tune does.
func Await(ctx context.Context, c *client.Client, j *tilthv1.Job, progress func(*trials.Tally)) (*Result, error) {
	tally := trials.NewTally(j, job.References(j.GetSpec()))
	hearing := Hearing{}
	if progress != nil {
		hearing.Changed = func() { progress(tally) }
	}
	failure := Follow(ctx, c, j, tally, hearing)
	if failure == nil && ctx.Err() == nil {
		return ended(ctx, c, j, tally)
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer done()
	if failure == nil { // it ended before it could be given up
		return ended(last, c, j, tally)
	} else if ctx.Err() != nil {
		failure = errors.Join(context.Cause(ctx), end(last, c, j, tally, hearing))
	} else {
		return nil, failure
	}
	r, err := resultOf(last, c, j, tally)
	return r, errors.Join(failure, err)
}

// ended is what came of a job that has ended by itself.
func ended(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally) (*Result, error) {
	r, err := resultOf(ctx, c, j, tally)
	if err == nil && tally.State == tilthv1.JobState_JOB_STATE_FAILED {
		err = fmt.Errorf("job %s failed: %s", j.GetId(), tally.Reason)
	}
	return r, err
}

// end cancels a job, and hears what was measured until then.
func end(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally, h Hearing) error {
	if _, err := c.Cancel(ctx, j.GetId(), "its client gave up"); err != nil {
		return fmt.Errorf("job %s goes on: %w", j.GetId(), err)
	}
	return Follow(ctx, c, j, tally, h)
}

func resultOf(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *trials.Tally) (*Result, error) {
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
