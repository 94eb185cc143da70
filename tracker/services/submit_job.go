package services

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// SubmitJob implements tilthv1.JobServiceServer.
func (s *Services) SubmitJob(ctx context.Context, req *tilthv1.SubmitJobRequest) (*tilthv1.SubmitJobResponse, error) {
	if err := cmp.Or(checkKeyName("request_id", req.GetRequestId()), checkJob(req.GetSpec())); err != nil {
		return nil, err
	}
	// What a client says of its owner counts only where nobody is asked who they are.
	if caller, is := access.From(ctx); is {
		req.Spec.Owner = caller.Name
	}
	if err := s.shard.takes(req.GetSpec().GetOwner()); err != nil {
		return nil, err
	}
	progress, err := firstProgress(ctx, s.engine.Store().Known, req.GetSpec())
	if err != nil {
		return nil, err
	}
	submission := state.NewSubmission(req.GetRequestId(), req.GetSpec(), progress)
	if err := s.engine.LookUp(submission); err != nil {
		return nil, s.status(err)
	}
	var job *tilthv1.Job
	var before string
	err = s.tryUpdate(ctx, func(c *state.Change) (err error) {
		job, before, err = c.Submit(submission)
		return err
	})
	if err == nil && before != "" {
		if job, err = s.engine.Store().Job(before); err != nil {
			err = storeError(err)
		}
	}
	if err != nil {
		return nil, err
	}
	return &tilthv1.SubmitJobResponse{Job: job}, nil
}
