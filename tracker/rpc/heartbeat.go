package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Heartbeat implements tilthv1.AgentServiceServer.
func (s *Services) Heartbeat(ctx context.Context, req *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	response, err := s.coordinator.Heartbeat(ctx, req)
	return response, s.status(err)
}
