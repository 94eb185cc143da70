package tracker

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// PauseJob implements tilthv1.JobServiceServer.
func (t *Tracker) PauseJob(ctx context.Context, req *tilthv1.PauseJobRequest) (*tilthv1.PauseJobResponse, error) {
	j, err := t.control(ctx, req.GetJobId(), func(c *change, j *job) error {
		c.pause(j, req.GetReason())
		return nil
	})
	return &tilthv1.PauseJobResponse{Job: j}, err
}

// ResumeJob implements tilthv1.JobServiceServer.
func (t *Tracker) ResumeJob(ctx context.Context, req *tilthv1.ResumeJobRequest) (*tilthv1.ResumeJobResponse, error) {
	j, err := t.control(ctx, req.GetJobId(), func(c *change, j *job) error {
		c.resume(j, req.GetReason())
		return nil
	})
	return &tilthv1.ResumeJobResponse{Job: j}, err
}

// control changes a job that has not ended, and returns it as it is stored then.
func (t *Tracker) control(ctx context.Context, id string, step func(*change, *job) error) (*tilthv1.Job, error) {
	ended := false
	err := t.update(ctx, func(c *change) error {
		j := c.jobs[id]
		if ended = j == nil; ended {
			return nil
		}
		return step(c, j)
	})
	if err != nil {
		return nil, err
	}
	j, err := t.db.Job(id)
	switch {
	case errors.Is(err, records.ErrNotFound):
		return nil, notFound("job", id)
	case err != nil:
		return nil, storeError(err)
	case ended:
		return nil, status.Errorf(codes.FailedPrecondition, "job %s has ended: submit it again", id)
	}
	return j, nil
}

// pause takes a job from the queues and from its tuner. What builders and runners hold of it they finish.
func (c *change) pause(j *job, reason string) {
	if j.paused() {
		return
	}
	c.withdraw(j)
	c.release(j)
	j.meta.PausedAt = c.now()
	c.setState(j, tilthv1.JobState_JOB_STATE_PAUSED, reason)
}

// resume puts back what is in nobody's hands.
func (c *change) resume(j *job, reason string) {
	if !j.paused() {
		return
	}
	if j.meta.GetStartedAt() != nil {
		// The wall's clock may have been set meanwhile.
		pause := max(c.cfg.Now().Sub(j.meta.GetPausedAt().AsTime()), 0)
		j.meta.Paused = durationpb.New(j.meta.GetPaused().AsDuration() + pause.Round(time.Millisecond))
	}
	j.meta.PausedAt = nil
	c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, reason)
	for _, b := range j.inOrder() {
		if b.lease == nil && b.retry == nil { // what failed meanwhile waits for its time
			c.enqueue(b, false)
		}
	}
	c.enqueue(j, false)
}
