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
