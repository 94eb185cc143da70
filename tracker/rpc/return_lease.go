package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ReturnLease implements tilthv1.AgentServiceServer. It is a no-op for a lease that is no longer held.
func (s *Services) ReturnLease(ctx context.Context, req *tilthv1.ReturnLeaseRequest) (*tilthv1.ReturnLeaseResponse, error) {
	err := s.update(ctx, func(c *state.Change) { c.ReturnLease(req.GetLease(), "handed it back") })
	return &tilthv1.ReturnLeaseResponse{}, err
}
