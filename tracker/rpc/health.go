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

// ServeHealth updates a gRPC health server until ctx ends. The empty name is the tracker's own health; services that
// need agents have their own.
func ServeHealth(ctx context.Context, e *coordinator.Coordinator, server *health.Server, log *slog.Logger) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	ready := true
	for ctx.Err() == nil {
		err := updateHealth(ctx, e, server)
		if err != nil && ready && ctx.Err() == nil {
			log.Warn("the tracker is not ready", "error", err)
		}
		ready = err == nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func updateHealth(ctx context.Context, e *coordinator.Coordinator, server *health.Server) error {
	ctx, cancel := context.WithTimeout(ctx, 2*healthInterval)
	defer cancel()
	err := e.Ready(ctx)
	server.SetServingStatus("", serving(err == nil))
	UpdateServiceHealth(e, server)
	return err
}

// UpdateServiceHealth updates the health of the services that need agents.
func UpdateServiceHealth(e *coordinator.Coordinator, server *health.Server) {
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
