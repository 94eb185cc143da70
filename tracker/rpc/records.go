package rpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ListRecords implements tilthv1.RecordServiceServer.
func (s *Services) ListRecords(req *tilthv1.ListRecordsRequest, stream grpc.ServerStreamingServer[tilthv1.ListRecordsResponse]) error {
	if err := checkTarget(req.GetTarget()); err != nil {
		return err
	}
	owner, err := s.readerOf(viewerOf(stream.Context()), req.GetJobId())
	if err != nil {
		return err
	}
	send := func(r *tilthv1.Record) error {
		r.Target, _ = records.SplitTarget(r.GetTarget())
		if err := records.CheckSize(r); err != nil {
			s.log.Warn("record left out of a listing", "error", err)
			return nil
		}
		return stream.Send(&tilthv1.ListRecordsResponse{Record: r})
	}
	err = s.coordinator.Store().List(stream.Context(), req.GetTarget(), req.GetWorkloadDigest(), send)
	if err == nil && owner != "" {
		err = s.coordinator.Store().List(stream.Context(), records.Private(req.GetTarget(), owner), req.GetWorkloadDigest(), send)
	}
	if errors.Is(err, records.ErrDamaged) || errors.Is(err, records.ErrAway) {
		return StoreError(err)
	}
	return err
}

// ImportRecords implements tilthv1.RecordServiceServer.
func (s *Services) ImportRecords(stream grpc.ClientStreamingServer[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]) error {
	imported, skipped, err := s.coordinator.Store().Import(stream.Context(), func() (*tilthv1.Record, error) {
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

// checkTarget refuses the names of private groups and the wildcard target.
func checkTarget(target string) error {
	if records.IsPrivate(target) || target == records.EveryTarget {
		return invalid("target", "%q is not one of a device", target)
	}
	return nil
}

// best returns the best record that the owner may see. With an empty owner it considers shared records only.
func (s *Services) best(owner, target, workload, numerics string) (*tilthv1.Record, error) {
	shared, err := s.coordinator.Store().BestAllowed(target, workload, numerics)
	if owner == "" || err != nil && !errors.Is(err, records.ErrNotFound) {
		return shared, err
	}
	own, otherwise := s.coordinator.Store().BestAllowed(records.Private(target, owner), workload, numerics)
	switch {
	case errors.Is(otherwise, records.ErrNotFound):
		return shared, err
	case otherwise != nil:
		return nil, otherwise
	case err == nil && records.Cost(shared.GetMeasurement()) <= records.Cost(own.GetMeasurement()):
		return shared, nil
	}
	own.Target = target
	return own, nil
}

// known returns a lookup of the records that the owner may see.
func (s *Services) known(owner string) lookUp {
	store := s.coordinator.Store()
	if owner == "" {
		return store.Known
	}
	return func(target, workload, numerics, candidate string, limit int) (records.Known, error) {
		own, err := store.Known(records.Private(target, owner), workload, numerics, candidate, limit)
		if err != nil {
			return own, err
		}
		shared, err := store.Known(target, workload, numerics, candidate, max(limit-own.Trials, 1))
		shared.Trials += own.Trials
		if own.Best != nil && (shared.Best == nil || records.Cost(own.Best) < records.Cost(shared.Best)) {
			shared.Best = own.Best
		}
		if own.CandidateSeconds > 0 {
			shared.CandidateSeconds = own.CandidateSeconds
		}
		return shared, err
	}
}

// readerOf returns the owner whose private records a call may read in addition to shared ones, or "". An agent may
// read the records of the owner of its job. Admins see other owners' private jobs, but not their records.
func (s *Services) readerOf(v viewer, jobID string) (owner string, err error) {
	if jobID == "" {
		return v.name, nil
	}
	job, err := s.jobOwner(jobID)
	switch {
	case err != nil:
		return "", err
	case !v.agent && !v.sees(job):
		return "", notFound("job", jobID)
	case !job.Private, !v.agent && job.Name != v.name:
		return "", nil
	}
	return job.Name, nil
}
