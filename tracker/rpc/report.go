package rpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// report runs a report under the batch's lease. A report that was accepted before is accepted again and changes
// nothing.
func (s *Services) report(ctx context.Context, call string, token *tilthv1.LeaseToken, step func(*state.Change) (known bool, err error)) error {
	known, err := result(ctx, s, step)
	if err != nil || known {
		return err
	}
	row, err := s.coordinator.Store().ClosedBatch(token.GetSubject())
	if err != nil && !errors.Is(err, records.ErrNotFound) {
		return StoreError(err)
	}
	if !state.Holds(row.GetSettled(), token) {
		return s.status(state.Stale(call, token))
	}
	s.repeated(call)
	return nil
}

// reportOnJob runs a report under the job's lease. A report under the lease that finished the job is a repetition.
func (s *Services) reportOnJob(ctx context.Context, call string, token *tilthv1.LeaseToken, step func(*state.Change) (bool, error)) error {
	held, err := result(ctx, s, step)
	if err == nil && !held && !s.finishedBy(token) {
		err = s.status(state.Stale(call, token))
	}
	return err
}

// finishedBy reports whether an ended job was finished under this lease, so that the call is a repetition.
func (s *Services) finishedBy(token *tilthv1.LeaseToken) bool {
	row, err := s.coordinator.Store().JobRow(token.GetSubject())
	if err != nil {
		if !errors.Is(err, records.ErrNotFound) {
			s.log.Error("read job", "job", token.GetSubject(), "error", err)
		}
		return false
	}
	return proto.Equal(row.GetFinishedBy(), token)
}

// repeated counts a repeated call, whose first response was probably lost.
func (s *Services) repeated(call string) { s.counts.Observe(state.Repeated{Call: call}) }
