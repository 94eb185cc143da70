package services

import (
	"context"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/engine"
	"github.com/tilth-dev/tilth/tracker/state"
)

// The services that need agents, by their kind. By gRPC's health service each is well while there is such an agent.
var needs = map[tilthv1.AgentKind]string{
	tilthv1.AgentKind_AGENT_KIND_TUNER:   tilthv1.SearchService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_BUILDER: tilthv1.BuildService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_RUNNER:  tilthv1.MeasureService_ServiceDesc.ServiceName,
}

// healthInterval is how often what gRPC's health service says is brought up to date.
const healthInterval = time.Second

// TellHealth does so on a server of gRPC's health service until ctx ends: the tracker's own health has the empty name;
// what needs agents has a service's.
func TellHealth(ctx context.Context, e *engine.Engine, server *health.Server) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		updateHealth(ctx, e, server)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func updateHealth(ctx context.Context, e *engine.Engine, server *health.Server) {
	ctx, cancel := context.WithTimeout(ctx, 2*healthInterval)
	defer cancel()
	server.SetServingStatus("", serving(e.Ready(ctx) == nil))
	TellKinds(e, server)
}

// TellKinds brings up to date what a server of gRPC's health service says of what needs agents.
func TellKinds(e *engine.Engine, server *health.Server) {
	var present map[tilthv1.AgentKind]bool
	e.Read(func(m *state.Machine) { present = m.Kinds() })
	for kind, name := range needs {
		server.SetServingStatus(name, serving(present[kind]))
	}
}

func serving(well bool) healthv1.HealthCheckResponse_ServingStatus {
	if well {
		return healthv1.HealthCheckResponse_SERVING
	}
	return healthv1.HealthCheckResponse_NOT_SERVING
}
