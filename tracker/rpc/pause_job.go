package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// PauseJob implements tilthv1.JobServiceServer.
func (s *Services) PauseJob(ctx context.Context, req *tilthv1.PauseJobRequest) (*tilthv1.PauseJobResponse, error) {
	j, err := s.control(ctx, req.GetJobId(), func(c *state.Change) (bool, error) { return c.Pause(req.GetJobId(), req.GetReason()), nil })
	return &tilthv1.PauseJobResponse{Job: j}, err
}
