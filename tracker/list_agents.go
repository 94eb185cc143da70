package tracker

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ListAgents implements tilthv1.AgentServiceServer; agents come by name.
func (t *Tracker) ListAgents(_ context.Context, req *tilthv1.ListAgentsRequest) (*tilthv1.ListAgentsResponse, error) {
	names := t.agentNames(req.GetKind(), req.GetPageToken())
	slices.Sort(names)
	t.mu.Lock()
	defer t.mu.Unlock()
	response, size := &tilthv1.ListAgentsResponse{Outage: t.outageShown()}, 0
	for i, name := range names {
		a := t.agents[name]
		if a == nil {
			continue // forgotten just now
		}
		agent := a.proto()
		size += proto.Size(agent)
		if most := int(req.GetPageSize()); most > 0 && i > 0 && (i == most || size > mostListBytes) {
			response.NextPageToken = names[i-1]
			break
		}
		response.Agents = append(response.Agents, agent)
	}
	return response, nil
}

// agentNames returns the names of the agents of a kind (unspecified = of every kind) after a name, in no order.
func (t *Tracker) agentNames(kind tilthv1.AgentKind, after string) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, a := range t.agents {
		if name > after && (kind == tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED || kind == a.spec.GetKind()) {
			names = append(names, name)
		}
	}
	return names
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
