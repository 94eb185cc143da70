package rpc

import (
	"context"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// ListRecordKeys implements tilthv1.RecordServiceServer.
func (s *Services) ListRecordKeys(_ context.Context, req *tilthv1.ListRecordKeysRequest) (*tilthv1.ListRecordKeysResponse, error) {
	if err := checkTarget(req.GetTarget()); err != nil {
		return nil, err
	}
	var from records.Key
	if len(req.GetFrom()) > 0 && copy(from[:], req.GetFrom()) != len(from) {
		return nil, invalid("from", "has %d bytes, not %d", len(req.GetFrom()), len(from))
	}
	limit := wire.MaxRecordKeys
	if size := int(req.GetPageSize()); size > 0 {
		limit = min(limit, size)
	}
	keys, err := s.coordinator.Store().KeyPage(records.Group{Target: req.GetTarget(), Workload: req.GetWorkloadDigest()}, from, limit)
	return &tilthv1.ListRecordKeysResponse{Keys: records.PackKeys(keys)}, StoreError(err)
}
