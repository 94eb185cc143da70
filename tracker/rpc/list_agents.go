package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ListAgents implements tilthv1.AgentServiceServer. Agents are sorted by name.
func (s *Services) ListAgents(_ context.Context, req *tilthv1.ListAgentsRequest) (*tilthv1.ListAgentsResponse, error) {
	agents, next, err := page(s, (*state.Machine).AgentNames, req, func(m *state.Machine, name string) (*tilthv1.Agent, bool) {
		a, err := m.Agent(name)
		if kind := req.GetKind(); err != nil || kind != tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED && kind != a.GetSpec().GetKind() {
			return nil, false
		}
		return a, true
	})
	if err != nil {
		return nil, err
	}
	response := &tilthv1.ListAgentsResponse{Agents: agents, NextPageToken: next}
	s.coordinator.Read(func(m *state.Machine) { response.Outage = m.Outage() })
	return response, nil
}
