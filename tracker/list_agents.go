package tracker

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListAgents implements tilthv1.AgentServiceServer; agents come by name.
func (t *Tracker) ListAgents(_ context.Context, req *tilthv1.ListAgentsRequest) (*tilthv1.ListAgentsResponse, error) {
	agents, next, err := page(t, t.agents, req, func(_ string, a *agent) (*tilthv1.Agent, bool) {
		if kind := req.GetKind(); kind != tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED && kind != a.spec.GetKind() {
			return nil, false
		}
		return a.shown(), true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &tilthv1.ListAgentsResponse{Agents: agents, Outage: t.outageShown(), NextPageToken: next}, nil
}

// GetAgent implements tilthv1.AgentServiceServer.
func (t *Tracker) GetAgent(_ context.Context, req *tilthv1.GetAgentRequest) (*tilthv1.GetAgentResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.agents[req.GetName()]
	if a == nil {
		return nil, notFound("agent", req.GetName())
	}
	return &tilthv1.GetAgentResponse{Agent: a.shown()}, nil
}
