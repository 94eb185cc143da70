package tracker

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// FinishJob implements tilthv1.SearchServiceServer.
func (t *Tracker) FinishJob(ctx context.Context, req *tilthv1.FinishJobRequest) (*tilthv1.FinishJobResponse, error) {
	switch req.GetState() {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED:
	default:
		return nil, invalid("state", "is %v, not DONE or FAILED", req.GetState())
	}
	held := false
	err := t.update(ctx, func(c *change) error {
		j, ok := c.lookUp(req.GetLease()).(*job)
		if !ok || j.runs() {
			return nil
		}
		held = true
		j.finishedBy = j.lease.proto()
		j.lease.agent.completed++
		j.lease.agent.rest.Forgive()
		c.end(j, req.GetState(), req.GetReason())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !held {
		if !t.finishedBy(req.GetLease()) {
			return nil, t.stale("FinishJob", req.GetLease())
		}
		t.repeated("FinishJob")
	}
	return &tilthv1.FinishJobResponse{}, nil
}

// finishedBy says whether an ended job was finished under this very lease: the call is a repetition.
func (t *Tracker) finishedBy(token *tilthv1.LeaseToken) bool {
	row, err := t.db.JobRow(token.GetSubject())
	if err != nil {
		if !errors.Is(err, records.ErrNotFound) {
			t.log.Error("job not read", "job", token.GetSubject(), "error", err)
		}
		return false
	}
	return proto.Equal(row.GetFinishedBy(), token)
}
