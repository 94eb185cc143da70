package tracker

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// BestRecords implements tilthv1.RecordServiceServer.
func (t *Tracker) BestRecords(_ context.Context, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	if len(req.GetWorkloadDigests()) == 0 {
		return t.bestPage(req)
	}
	if req.GetTarget() == "" {
		return nil, invalid("target", "is empty: workloads are looked up for one target")
	}
	if !records.ValidNumerics(req.GetNumerics()) {
		return nil, invalid("numerics", "is %q, not strict, default or fast", req.GetNumerics())
	}
	response := &tilthv1.BestRecordsResponse{}
	for _, digest := range req.GetWorkloadDigests() {
		best, err := t.db.BestAllowed(req.GetTarget(), digest, req.GetNumerics())
		if errors.Is(err, records.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, storeError(err)
		}
		response.Records = append(response.Records, best)
	}
	return response, nil
}

// bestPage answers for every workload. A token is a mark of the store as hexadecimal digits.
func (t *Tracker) bestPage(req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	mark, err := hex.DecodeString(req.GetPageToken())
	if err != nil {
		return nil, invalid("page_token", "%q is none that was given out", req.GetPageToken())
	}
	if req.GetPageSize() == 0 {
		best, err := t.db.BestAll(req.GetTarget())
		return &tilthv1.BestRecordsResponse{Records: best}, storeError(err)
	}
	best, next, err := t.db.BestPage(req.GetTarget(), string(mark), int(req.GetPageSize()))
	return &tilthv1.BestRecordsResponse{Records: best, NextPageToken: hex.EncodeToString([]byte(next))}, storeError(err)
}

// ListRecords implements tilthv1.RecordServiceServer.
func (t *Tracker) ListRecords(req *tilthv1.ListRecordsRequest, stream grpc.ServerStreamingServer[tilthv1.ListRecordsResponse]) error {
	err := t.db.List(stream.Context(), req.GetTarget(), req.GetWorkloadDigest(), func(r *tilthv1.Record) error {
		return stream.Send(&tilthv1.ListRecordsResponse{Record: r})
	})
	if errors.Is(err, records.ErrDamaged) {
		return storeError(err)
	}
	return err
}

// PruneRecords implements tilthv1.AdminServiceServer.
func (t *Tracker) PruneRecords(ctx context.Context, req *tilthv1.PruneRecordsRequest) (*tilthv1.PruneRecordsResponse, error) {
	removed, kept, err := t.db.Prune(ctx, records.PruneOptions{
		KeepBest: int(req.GetKeepBest()), KeepRecent: int(req.GetKeepRecent()), Target: req.GetTarget(), Workload: req.GetWorkloadDigest(),
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, storeError(err)
	}
	t.log.Info("records pruned", "removed", removed, "kept", kept)
	return &tilthv1.PruneRecordsResponse{Removed: removed, Kept: kept}, nil
}

// ImportRecords implements tilthv1.RecordServiceServer.
func (t *Tracker) ImportRecords(stream grpc.ClientStreamingServer[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]) error {
	imported, skipped, err := t.db.Import(stream.Context(), func() (*tilthv1.Record, error) {
		m, err := stream.Recv()
		return m.GetRecord(), err
	})
	if errors.Is(err, records.ErrInvalid) {
		return invalid("record", "%s", strings.TrimPrefix(err.Error(), records.ErrInvalid.Error()+": "))
	}
	if _, isStatus := status.FromError(err); err != nil && !isStatus {
		return wire.Refuse(codes.Unavailable, wire.ReasonUnwritten, "import records: %v", err)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&tilthv1.ImportRecordsResponse{Imported: imported, Skipped: skipped})
}
