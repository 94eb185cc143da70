package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// EndWait implements tilthv1.AgentServiceServer.
func (s *Services) EndWait(_ context.Context, req *tilthv1.EndWaitRequest) (*tilthv1.EndWaitResponse, error) {
	ended, err := s.coordinator.EndWait(req.GetSession(), req.GetName())
	return &tilthv1.EndWaitResponse{Ended: ended}, s.status(err)
}
