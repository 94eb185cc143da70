package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
)

// FindLackingRecords implements tilthv1.RecordServiceServer.
func (s *Services) FindLackingRecords(_ context.Context, req *tilthv1.FindLackingRecordsRequest) (*tilthv1.FindLackingRecordsResponse, error) {
	of, keys, err := groupKeys(req)
	if err != nil {
		return nil, err
	}
	lacking, err := storesync.Lacking(s.coordinator.Store(), of, keys)
	return &tilthv1.FindLackingRecordsResponse{Keys: records.PackKeys(lacking)}, StoreError(err)
}

// keysRequest identifies records of a group.
type keysRequest interface {
	GetTarget() string
	GetWorkloadDigest() string
	GetKeys() []byte
}

func groupKeys(req keysRequest) (records.Group, []records.Key, error) {
	if err := checkTarget(req.GetTarget()); err != nil {
		return records.Group{}, nil, err
	}
	keys, err := records.UnpackKeys(req.GetKeys())
	if err != nil {
		return records.Group{}, nil, invalid("keys", "of %d bytes are not in order, or not whole", len(req.GetKeys()))
	}
	return records.Group{Target: req.GetTarget(), Workload: req.GetWorkloadDigest()}, keys, nil
}
