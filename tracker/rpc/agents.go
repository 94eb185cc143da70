package rpc

import (
	"context"
	"crypto/rand"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Join implements tilthv1.AgentServiceServer.
func (s *Services) Join(ctx context.Context, req *tilthv1.JoinRequest) (*tilthv1.JoinResponse, error) {
	spec := req.GetSpec()
	if err := checkAgent(spec); err != nil {
		return nil, err
	}
	session := rand.Text()
	joined, err := result(ctx, s, func(c *state.Change) (state.Joined, error) { return c.Join(spec, session, callerName(ctx)) })
	if err != nil {
		return nil, err
	}
	return &tilthv1.JoinResponse{
		Session: session, HeartbeatInterval: durationpb.New(joined.HeartbeatInterval), Calibrate: joined.Calibrate,
	}, nil
}

func checkAgent(spec *tilthv1.AgentSpec) error {
	if err := checkName("spec.name", spec.GetName()); err != nil {
		return err
	}
	kind := spec.GetKind()
	offers := []struct {
		kind  tilthv1.AgentKind
		field string
		count int
	}{
		{tilthv1.AgentKind_AGENT_KIND_TUNER, "spec.tuners", len(spec.GetTuners())},
		{tilthv1.AgentKind_AGENT_KIND_BUILDER, "spec.toolchains", len(spec.GetToolchains())},
		{tilthv1.AgentKind_AGENT_KIND_RUNNER, "spec.device_classes", len(spec.GetDeviceClasses())},
	}
	known := false
	for _, o := range offers {
		if o.kind == kind && o.count == 0 {
			return invalid(o.field, "is empty: a %s offers at least one", wire.AgentKind(kind))
		}
		known = known || o.kind == kind
	}
	if !known {
		return invalid("spec.kind", "is %v", kind)
	}
	if n := proto.Size(spec); n > state.MaxAgentBytes {
		return invalid("spec", "has %d bytes, more than the limit of %d", n, state.MaxAgentBytes)
	}
	for _, o := range offers {
		if o.count > wire.MaxOffers {
			return invalid(o.field, "are %d, more than the limit of %d", o.count, wire.MaxOffers)
		}
	}
	for _, o := range offers {
		if o.count > 0 && o.kind != kind {
			return invalid(o.field, "is set, but the agent is a %s", wire.AgentKind(kind))
		}
	}
	for i, d := range spec.GetDeviceClasses() {
		if d.GetName() == "" {
			return invalidItem("spec.device_classes", i, "name", "is empty")
		}
	}
	return nil
}

// Heartbeat implements tilthv1.AgentServiceServer.
func (s *Services) Heartbeat(ctx context.Context, req *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	response, err := s.coordinator.Heartbeat(ctx, req)
	return response, s.status(err)
}

// Leave implements tilthv1.AgentServiceServer. Repeating the call changes nothing.
func (s *Services) Leave(ctx context.Context, req *tilthv1.LeaveRequest) (*tilthv1.LeaveResponse, error) {
	return &tilthv1.LeaveResponse{}, s.update(ctx, func(c *state.Change) { c.Leave(req.GetSession()) })
}

// GetAgent implements tilthv1.AgentServiceServer.
func (s *Services) GetAgent(_ context.Context, req *tilthv1.GetAgentRequest) (*tilthv1.GetAgentResponse, error) {
	var a *tilthv1.Agent
	var err error
	s.coordinator.Read(func(m *state.Machine) { a, err = m.Agent(req.GetName()) })
	return &tilthv1.GetAgentResponse{Agent: a}, s.status(err)
}

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

// LeaseWork implements tilthv1.AgentServiceServer.
func (s *Services) LeaseWork(ctx context.Context, req *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	response, err := s.coordinator.Lease(ctx, req.GetSession(), req.GetName(), wait)
	return response, s.status(err)
}

// EndWait implements tilthv1.AgentServiceServer.
func (s *Services) EndWait(_ context.Context, req *tilthv1.EndWaitRequest) (*tilthv1.EndWaitResponse, error) {
	ended, err := s.coordinator.EndWait(req.GetSession(), req.GetName())
	return &tilthv1.EndWaitResponse{Ended: ended}, s.status(err)
}

// ReturnLease implements tilthv1.AgentServiceServer. It is a no-op for a lease that is no longer held.
func (s *Services) ReturnLease(ctx context.Context, req *tilthv1.ReturnLeaseRequest) (*tilthv1.ReturnLeaseResponse, error) {
	err := s.update(ctx, func(c *state.Change) { c.ReturnLease(req.GetLease(), "handed it back") })
	return &tilthv1.ReturnLeaseResponse{}, err
}
