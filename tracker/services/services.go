package services

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/engine"
	"github.com/tilth-dev/tilth/tracker/refusal"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Services implement the tilth.v1 services. Their methods may be called from many goroutines.
type Services struct {
	tilthv1.UnimplementedJobServiceServer
	tilthv1.UnimplementedAgentServiceServer
	tilthv1.UnimplementedSearchServiceServer
	tilthv1.UnimplementedBuildServiceServer
	tilthv1.UnimplementedMeasureServiceServer
	tilthv1.UnimplementedRecordServiceServer
	tilthv1.UnimplementedDeviceServiceServer
	tilthv1.UnimplementedRunServiceServer
	tilthv1.UnimplementedAdminServiceServer

	engine  *engine.Engine
	backups Backups
	counts  Counts
	log     *slog.Logger
	shard   Shard
	// releases are what is offered to agents.
	releases *Releases
}

// Counts hear of what services did.
type Counts interface {
	// Refused is a call that was refused.
	Refused(*refusal.Error)
	// Observe is something that happened.
	Observe(state.Fact)
}

// Backups are those that the tracker makes.
type Backups interface {
	// Begin begins one; ok is false while another is under way.
	Begin() (end func(), ok bool)
}

// New returns services of an engine, which has a shard.
func New(e *engine.Engine, shard Shard, backups Backups, counts Counts, releases *Releases, log *slog.Logger) *Services {
	return &Services{engine: e, shard: shard, backups: backups, counts: counts, releases: releases, log: log}
}

// Register adds the services to a server.
func (s *Services) Register(r grpc.ServiceRegistrar) {
	tilthv1.RegisterJobServiceServer(r, s)
	tilthv1.RegisterAgentServiceServer(r, s)
	tilthv1.RegisterSearchServiceServer(r, s)
	tilthv1.RegisterBuildServiceServer(r, s)
	tilthv1.RegisterMeasureServiceServer(r, s)
	tilthv1.RegisterRecordServiceServer(r, s)
	tilthv1.RegisterDeviceServiceServer(r, s)
	tilthv1.RegisterRunServiceServer(r, s)
	tilthv1.RegisterAdminServiceServer(r, s)
	tilthv1.RegisterReleaseServiceServer(r, s.releases)
	tilthv1.RegisterArtifactServiceServer(r, artifact.NewService(s.engine.Artifacts(), callerName))
}

// update runs an operation of the state machine, which returns no error.
func (s *Services) update(ctx context.Context, step func(c *state.Change)) error {
	return s.tryUpdate(ctx, func(c *state.Change) error {
		step(c)
		return nil
	})
}

// tryUpdate runs an operation of the state machine. Its errors are statuses. An operation that changes nothing is
// answered only if the tracker has the store: one that lost it, and does not know yet, may think that a job is paused
// which another tracker has resumed.
func (s *Services) tryUpdate(ctx context.Context, step func(c *state.Change) error) error {
	return s.status(s.engine.Update(ctx, func(c *state.Change) error {
		c.Confirm()
		return step(c)
	}))
}

// callerName is the identity that a call was made with; empty where nobody is asked.
func callerName(ctx context.Context) string {
	id, _ := access.From(ctx)
	return id.Name
}
