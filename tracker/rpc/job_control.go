package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// control changes an open job with step and returns the stored result.
func (s *Services) control(ctx context.Context, id string, step func(*state.Change) (ok bool, err error)) (*tilthv1.Job, error) {
	open, err := result(ctx, s, step)
	if err != nil {
		return nil, err
	}
	j, err := s.coordinator.Store().Job(id)
	switch {
	case errors.Is(err, records.ErrNotFound):
		return nil, notFound("job", id)
	case err != nil:
		return nil, StoreError(err)
	case !open:
		return nil, status.Errorf(codes.FailedPrecondition, "job %s has ended: submit it again", id)
	}
	return j, nil
}
