package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ResumeJob implements tilthv1.JobServiceServer.
func (s *Services) ResumeJob(ctx context.Context, req *tilthv1.ResumeJobRequest) (*tilthv1.ResumeJobResponse, error) {
	j, err := s.control(ctx, req.GetJobId(), func(c *state.Change) (bool, error) { return c.Resume(req.GetJobId(), req.GetReason()), nil })
	return &tilthv1.ResumeJobResponse{Job: j}, err
}
