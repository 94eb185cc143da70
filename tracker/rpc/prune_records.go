package rpc

import (
	"context"

	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// PruneRecords implements tilthv1.AdminServiceServer.
func (s *Services) PruneRecords(ctx context.Context, req *tilthv1.PruneRecordsRequest) (*tilthv1.PruneRecordsResponse, error) {
	removed, kept, err := s.coordinator.Store().Prune(ctx, records.PruneOptions{
		KeepBest: int(req.GetKeepBest()), KeepRecent: int(req.GetKeepRecent()), Target: req.GetTarget(), Workload: req.GetWorkloadDigest(),
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, StoreError(err)
	}
	s.log.Info("records pruned", "removed", removed, "kept", kept)
	return &tilthv1.PruneRecordsResponse{Removed: removed, Kept: kept}, nil
}
