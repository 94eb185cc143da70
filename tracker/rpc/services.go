package rpc

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Services implements the tilth.v1 services. Its methods are safe for concurrent use.
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

	coordinator *coordinator.Coordinator
	backups     Backups
	counts      Counts
	log         *slog.Logger
	shard       Shard
	// releases serves agents' updates.
	releases *Releases
}

// Counts receives statistics of the services.
type Counts interface {
	// Refused counts a refused call.
	Refused(*state.Refusal)
	// Observe counts a fact.
	Observe(state.Fact)
}

// Backups serializes the tracker's backups.
type Backups interface {
	// Begin starts a backup; ok is false while another is running. The caller must call end.
	Begin() (end func(), ok bool)
}

// New returns the services of a coordinator for one shard.
func New(e *coordinator.Coordinator, shard Shard, backups Backups, counts Counts, releases *Releases, log *slog.Logger) *Services {
	return &Services{coordinator: e, shard: shard, backups: backups, counts: counts, releases: releases, log: log}
}

// Register registers the services with a server.
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
	tilthv1.RegisterArtifactServiceServer(r, artifact.NewService(s.coordinator.Artifacts(), callerName))
}

// update runs an operation of the state machine that cannot fail.
func (s *Services) update(ctx context.Context, step func(c *state.Change)) error {
	return s.tryUpdate(ctx, func(c *state.Change) error {
		step(c)
		return nil
	})
}

// tryUpdate runs an operation of the state machine and converts its errors to statuses. Even an operation that changes
// nothing requires that the tracker still owns the store: one that lost it without noticing might report a job as
// paused that another tracker has resumed.
func (s *Services) tryUpdate(ctx context.Context, step func(c *state.Change) error) error {
	return s.status(s.coordinator.Update(ctx, func(c *state.Change) error {
		c.Confirm()
		return step(c)
	}))
}

// result is tryUpdate for an operation with a result.
func result[T any](ctx context.Context, s *Services, step func(c *state.Change) (T, error)) (out T, err error) {
	err = s.tryUpdate(ctx, func(c *state.Change) (err error) {
		out, err = step(c)
		return err
	})
	return out, err
}

// callerName returns the caller's authenticated name, or "" without authentication.
func callerName(ctx context.Context) string {
	id, _ := access.From(ctx)
	return id.Name
}

// Shard identifies one of several shards. The zero value is the only shard.
type Shard struct{ Index, Count int }

// elsewhere reports whether a job belongs to another shard. Its stored data can be read all the same.
func (s Shard) elsewhere(jobID string) bool { return s.Count > 1 && wire.ShardOf(jobID) != s.Index }

// takes refuses jobs of an owner that belongs to another shard.
func (s Shard) takes(owner string) error {
	if of := wire.ShardOfOwner(owner, s.Count); of != s.Index {
		return wire.RefuseShard(wire.ReasonOtherShard, of, "jobs of owner %q are in shard %d, and this is shard %d", owner, of, s.Index)
	}
	return nil
}
