package tracker

import (
	"cmp"
	"context"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListAgents implements tilthv1.AgentServiceServer; agents come by name.
func (t *Tracker) ListAgents(_ context.Context, req *tilthv1.ListAgentsRequest) (*tilthv1.ListAgentsResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	response := &tilthv1.ListAgentsResponse{}
	for _, a := range t.agents {
		if k := req.GetKind(); k == tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED || k == a.spec.GetKind() {
			response.Agents = append(response.Agents, a.proto())
		}
	}
	slices.SortFunc(response.Agents, func(a, b *tilthv1.Agent) int {
		return cmp.Compare(a.GetSpec().GetName(), b.GetSpec().GetName())
	})
	return response, nil
}

// GetAgent implements tilthv1.AgentServiceServer.
func (t *Tracker) GetAgent(_ context.Context, req *tilthv1.GetAgentRequest) (*tilthv1.GetAgentResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.agents[req.GetName()]
	if a == nil {
		return nil, notFound("agent", req.GetName())
	}
	return &tilthv1.GetAgentResponse{Agent: a.proto()}, nil
}
