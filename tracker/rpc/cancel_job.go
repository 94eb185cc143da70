package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// CancelJob implements tilthv1.JobServiceServer.
func (s *Services) CancelJob(ctx context.Context, req *tilthv1.CancelJobRequest) (*tilthv1.CancelJobResponse, error) {
	err := s.update(ctx, func(c *state.Change) { c.Cancel(req.GetJobId(), req.GetReason()) })
	if err != nil {
		return nil, err
	}
	got, err := s.GetJob(ctx, &tilthv1.GetJobRequest{JobId: req.GetJobId()})
	return &tilthv1.CancelJobResponse{Job: got.GetJob()}, err
}
