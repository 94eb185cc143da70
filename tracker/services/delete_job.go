package services

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// DeleteJob implements tilthv1.JobServiceServer. Of a job that the caller does not see, it says what it says of one
// that is gone, and leaves it.
func (s *Services) DeleteJob(ctx context.Context, req *tilthv1.DeleteJobRequest) (*tilthv1.DeleteJobResponse, error) {
	v, id := viewerOf(ctx), req.GetJobId()
	remove := func(c *state.Change) error { return c.Delete(id) }
	if !v.all {
		owner, err := s.jobOwner(id)
		if err != nil && status.Code(err) != codes.NotFound {
			return nil, err
		}
		if !v.sees(owner) {
			remove = func(c *state.Change) error { return c.DeleteGone(id) }
		}
	}
	if err := s.tryUpdate(ctx, remove); err != nil {
		return nil, err
	}
	return &tilthv1.DeleteJobResponse{}, nil
}
