package rpc

import (
	"context"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// LeaseWork implements tilthv1.AgentServiceServer.
func (s *Services) LeaseWork(ctx context.Context, req *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	response, err := s.coordinator.Lease(ctx, req.GetSession(), req.GetName(), wait)
	return response, s.status(err)
}
