package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// FinishJob implements tilthv1.SearchServiceServer.
func (s *Services) FinishJob(ctx context.Context, req *tilthv1.FinishJobRequest) (*tilthv1.FinishJobResponse, error) {
	switch req.GetState() {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED:
	default:
		return nil, invalid("state", "is %v, not DONE or FAILED", req.GetState())
	}
	held := false
	err := s.update(ctx, func(c *state.Change) { held = c.Finish(req.GetLease(), req.GetState(), req.GetReason()) })
	if err != nil {
		return nil, err
	}
	if !held {
		if !s.finishedBy(req.GetLease()) {
			return nil, s.status(state.Stale("FinishJob", req.GetLease()))
		}
		s.repeated("FinishJob")
	}
	return &tilthv1.FinishJobResponse{}, nil
}
