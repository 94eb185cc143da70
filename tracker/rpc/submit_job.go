package rpc

import (
	"cmp"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// SubmitJob implements tilthv1.JobServiceServer.
func (s *Services) SubmitJob(ctx context.Context, req *tilthv1.SubmitJobRequest) (*tilthv1.SubmitJobResponse, error) {
	if err := cmp.Or(checkKeyName("request_id", req.GetRequestId()), checkJob(req.GetSpec())); err != nil {
		return nil, err
	}
	_, asked := access.From(ctx)
	if req.GetSpec().GetPrivate() && !asked {
		return nil, status.Error(codes.FailedPrecondition, "private jobs require authentication: enable it (see docs/security.md), or submit without --private")
	}
	// The owner in the spec counts only without authentication.
	if caller, is := access.From(ctx); is {
		req.Spec.Owner = caller.Name
	}
	job, err := s.submit(ctx, req.GetRequestId(), req.GetSpec())
	return &tilthv1.SubmitJobResponse{Job: job}, err
}

// submit creates the job of a request of its owner, or returns the job that the request created earlier.
func (s *Services) submit(ctx context.Context, requestID string, spec *tilthv1.JobSpec) (job *tilthv1.Job, err error) {
	if err := s.shard.takes(spec.GetOwner()); err != nil {
		return nil, err
	}
	progress, err := firstProgress(ctx, s.known(privateOwner(spec)), spec)
	if err != nil {
		return nil, err
	}
	submission := state.NewSubmission(requestID, spec, progress)
	if err := s.coordinator.LookUp(submission); err != nil {
		return nil, s.status(err)
	}
	var before string
	err = s.tryUpdate(ctx, func(c *state.Change) (err error) {
		job, before, err = c.Submit(submission)
		return err
	})
	if err == nil && before != "" {
		job, err = s.coordinator.Store().Job(before)
		err = StoreError(err)
	}
	return job, err
}

// privateOwner returns the owner whose private records the job may use: its own if it is private, otherwise none.
func privateOwner(spec *tilthv1.JobSpec) string {
	if spec.GetPrivate() {
		return spec.GetOwner()
	}
	return ""
}
