package services

import (
	"errors"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ListRecords implements tilthv1.RecordServiceServer.
func (s *Services) ListRecords(req *tilthv1.ListRecordsRequest, stream grpc.ServerStreamingServer[tilthv1.ListRecordsResponse]) error {
	err := s.engine.Store().List(stream.Context(), req.GetTarget(), req.GetWorkloadDigest(), func(r *tilthv1.Record) error {
		if err := records.TooLarge(r); err != nil {
			s.log.Warn("record left out of a listing", "error", err)
			return nil
		}
		return stream.Send(&tilthv1.ListRecordsResponse{Record: r})
	})
	if errors.Is(err, records.ErrDamaged) || errors.Is(err, records.ErrAway) {
		return storeError(err)
	}
	return err
}
