package rpc

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
)

// ListRecordGroups implements tilthv1.RecordServiceServer. A page token is a group's name in hexadecimal.
func (s *Services) ListRecordGroups(_ context.Context, req *tilthv1.ListRecordGroupsRequest) (*tilthv1.ListRecordGroupsResponse, error) {
	if err := checkTarget(req.GetTarget()); err != nil {
		return nil, err
	}
	after, err := hex.DecodeString(req.GetPageToken())
	target, _, whole := strings.Cut(string(after), "\x00")
	if err != nil || len(after) > 0 && (!whole || records.IsPrivate(target) || req.GetTarget() != "" && target != req.GetTarget()) {
		return nil, invalidPageToken(req.GetPageToken())
	}
	filter := storesync.Filter{Target: req.GetTarget(), Workloads: slices.Sorted(slices.Values(req.GetWorkloadDigests()))}
	page, next, err := storesync.Summaries(s.coordinator.Store(), filter, string(after), int(req.GetPageSize()))
	if err != nil {
		return nil, StoreError(err)
	}
	response := &tilthv1.ListRecordGroupsResponse{NextPageToken: hex.EncodeToString([]byte(next))}
	for _, g := range page {
		response.Groups = append(response.Groups, &tilthv1.RecordGroup{
			Target: g.Target, WorkloadDigest: g.Workload, Records: g.Records, KeysDigest: g.Keys[:],
		})
	}
	return response, nil
}

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
