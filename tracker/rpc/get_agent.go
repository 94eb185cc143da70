package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// GetAgent implements tilthv1.AgentServiceServer.
func (s *Services) GetAgent(_ context.Context, req *tilthv1.GetAgentRequest) (response *tilthv1.GetAgentResponse, err error) {
	s.coordinator.Read(func(m *state.Machine) {
		var a *tilthv1.Agent
		if a, err = m.Agent(req.GetName()); err == nil {
			response = &tilthv1.GetAgentResponse{Agent: a}
		}
	})
	return response, s.status(err)
}
