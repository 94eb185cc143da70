package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Leave implements tilthv1.AgentServiceServer. Repeating the call changes nothing.
func (s *Services) Leave(ctx context.Context, req *tilthv1.LeaveRequest) (*tilthv1.LeaveResponse, error) {
	return &tilthv1.LeaveResponse{}, s.update(ctx, func(c *state.Change) { c.Leave(req.GetSession()) })
}
