package services

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// DeleteJob implements tilthv1.JobServiceServer.
func (s *Services) DeleteJob(ctx context.Context, req *tilthv1.DeleteJobRequest) (*tilthv1.DeleteJobResponse, error) {
	err := s.tryUpdate(ctx, func(c *state.Change) error { return c.Delete(req.GetJobId()) })
	if err != nil {
		return nil, err
	}
	return &tilthv1.DeleteJobResponse{}, nil
}
