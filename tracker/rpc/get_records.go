package rpc

import (
	"errors"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
)

// GetRecords implements tilthv1.RecordServiceServer.
func (s *Services) GetRecords(req *tilthv1.GetRecordsRequest, stream grpc.ServerStreamingServer[tilthv1.GetRecordsResponse]) error {
	of, keys, err := groupKeys(req)
	if err != nil {
		return err
	}
	err = storesync.Get(s.coordinator.Store(), of, keys, func(r *tilthv1.Record) error {
		if err := records.CheckSize(r); err != nil {
			s.log.Warn("record left out of an exchange", "error", err)
			return nil
		}
		return stream.Send(&tilthv1.GetRecordsResponse{Record: r})
	})
	if errors.Is(err, records.ErrDamaged) || errors.Is(err, records.ErrAway) {
		return StoreError(err)
	}
	return err
}
