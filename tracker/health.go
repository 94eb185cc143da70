package tracker

import (
	"context"
	"errors"
	"fmt"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/internal/health"
	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// leastFreeBytes is the room on the disk under which the tracker says that it is not ready: the records file grows in
// steps of 16 MiB, and a tracker whose disk is full stops.
const leastFreeBytes = 64 << 20

// checks are the tracker's health as told over HTTP.
func (t *Tracker) checks() health.Checks { return health.Checks{Live: t.alive, Ready: t.ready} }

// alive fails when the store does: the memory is then ahead of it for good.
func (t *Tracker) alive() error {
	select {
	case <-t.failed:
		return errors.New("the records file cannot be written, see the log: free the disk and start the tracker again")
	default:
		return nil
	}
}

// ready fails unless what is handed to the store now would be written. Whether agents are there is no part of it: they
// come by way of whoever asks this.
func (t *Tracker) ready(ctx context.Context) error {
	if err := t.alive(); err != nil {
		return err
	}
	select {
	case <-t.closing:
		return errors.New("the tracker is stopping")
	default:
	}
	if err := t.db.Commit(&records.Write{}).Wait(ctx); err != nil { // which waits for all that is before it
		return fmt.Errorf("the records file is not written: %w", err)
	}
	free, err := t.freeBytes()
	if err != nil {
		return errors.New("the disk of the records cannot be looked at")
	}
	if free < leastFreeBytes {
		return fmt.Errorf("the disk of the records has %s left, less than %s: make room", show.Bytes(free), show.Bytes(leastFreeBytes))
	}
	return nil
}

// freeBytes is the room for records and artifacts, the lesser of the two.
func (t *Tracker) freeBytes() (int64, error) {
	own, err := disk.FreeBytes(t.db.Path())
	if err != nil {
		return 0, err
	}
	artifacts, err := disk.FreeBytes(t.cfg.ArtifactsDir)
	return min(own, artifacts), err
}

// The services that need agents, by their kind. By gRPC's health service each is well while there is such an agent.
var needs = map[tilthv1.AgentKind]string{
	tilthv1.AgentKind_AGENT_KIND_TUNER:   tilthv1.SearchService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_BUILDER: tilthv1.BuildService_ServiceDesc.ServiceName,
	tilthv1.AgentKind_AGENT_KIND_RUNNER:  tilthv1.MeasureService_ServiceDesc.ServiceName,
}

// healthInterval is how often what gRPC's health service says is brought up to date.
const healthInterval = time.Second

// tellHealth does so until ctx ends: the tracker's own health has the empty name; what needs agents has a service's.
func (t *Tracker) tellHealth(ctx context.Context) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		t.updateHealth(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (t *Tracker) updateHealth(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*healthInterval)
	defer cancel()
	t.health.SetServingStatus("", serving(t.ready(ctx) == nil))
	present := t.presentKinds()
	for kind, name := range needs {
		t.health.SetServingStatus(name, serving(present[kind]))
	}
}

// presentKinds are the kinds of which a live agent is there.
func (t *Tracker) presentKinds() map[tilthv1.AgentKind]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	present := map[tilthv1.AgentKind]bool{}
	for _, a := range t.sessions {
		present[a.spec.GetKind()] = true
		if len(present) == len(needs) {
			break
		}
	}
	return present
}

func serving(well bool) healthv1.HealthCheckResponse_ServingStatus {
	if well {
		return healthv1.HealthCheckResponse_SERVING
	}
	return healthv1.HealthCheckResponse_NOT_SERVING
}
