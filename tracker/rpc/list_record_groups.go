package rpc

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

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
