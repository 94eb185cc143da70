package services

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
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

// finishedBy says whether an ended job was finished under this very lease: the call is a repetition.
func (s *Services) finishedBy(token *tilthv1.LeaseToken) bool {
	row, err := s.engine.Store().JobRow(token.GetSubject())
	if err != nil {
		if !errors.Is(err, records.ErrNotFound) {
			s.log.Error("job not read", "job", token.GetSubject(), "error", err)
		}
		return false
	}
	return proto.Equal(row.GetFinishedBy(), token)
}

// repeated counts a call whose first answer was lost, most likely.
func (s *Services) repeated(call string) { s.counts.Observe(state.Repeated{Call: call}) }
