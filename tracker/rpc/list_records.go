package rpc

import (
	"errors"

	"google.golang.org/grpc"

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
