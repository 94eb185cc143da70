package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// DeleteJob implements tilthv1.JobServiceServer. For a job that the caller cannot see, it changes nothing and answers
// as if the job were already gone.
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
	return &tilthv1.DeleteJobResponse{}, s.tryUpdate(ctx, remove)
}
