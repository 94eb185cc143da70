package rpc

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/state"
)

// needs maps agent kinds to the services that require them. A service is healthy while such an agent has a session.
var needs = map[tilthv1.AgentKind]string{
	tilthv1.AgentKind_AGENT_KIND_TUNER:   tilthv1.SearchService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_BUILDER: tilthv1.BuildService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_RUNNER:  tilthv1.MeasureService_ServiceDesc.ServiceName,
}

// healthInterval is the interval between updates of the gRPC health service.
const healthInterval = time.Second

// ServeHealth updates a gRPC health server until ctx ends. The empty name is the health of the process, which ready
// returns; services that need agents have their own. agents returns a tracker with the sessions of all agents, or nil.
func ServeHealth(ctx context.Context, server *health.Server, ready func(context.Context) error, agents func() *coordinator.Coordinator, log *slog.Logger) {
	tick := time.Tick(healthInterval)
	well := true
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, 2*healthInterval)
		err := ready(within)
		cancel()
		server.SetServingStatus("", serving(err == nil))
		if err != nil && well && ctx.Err() == nil {
			log.Warn("the tracker is not ready", "error", err)
		}
		well = err == nil
		if e := agents(); e != nil {
			var present map[tilthv1.AgentKind]bool
			e.Read(func(m *state.Machine) { present = m.Kinds() })
			for kind, name := range needs {
				server.SetServingStatus(name, serving(present[kind]))
			}
		}
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
}

func serving(well bool) healthv1.HealthCheckResponse_ServingStatus {
	if well {
		return healthv1.HealthCheckResponse_SERVING
	}
	return healthv1.HealthCheckResponse_NOT_SERVING
}
