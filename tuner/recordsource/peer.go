package recordsource

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
)

// Peer is a side of an exchange of records.
type Peer interface {
	Source
	storesync.Source
	// Lacking and Add implement storesync.Destination.
	Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)
	Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error)
}

// Groups implements storesync.Catalogue. Page tokens are hexadecimal, so they sort like names.
func (r remote) Groups(ctx context.Context, f storesync.Filter, after string) (page []storesync.Summary, next string, err error) {
	response, err := r.RecordGroups(ctx, &tilthv1.ListRecordGroupsRequest{Target: f.Target, WorkloadDigests: f.Workloads, PageToken: after})
	if err != nil {
		return nil, "", err
	}
	for _, g := range response.GetGroups() {
		if len(g.GetKeysDigest()) != sha256.Size {
			return nil, "", fmt.Errorf("%w: tracker %s sums up records by a digest of %d bytes", records.ErrInvalid, r.Addr(), len(g.GetKeysDigest()))
		}
		page = append(page, storesync.Summary{
			Group: records.Group{Target: g.GetTarget(), Workload: g.GetWorkloadDigest()}, Records: g.GetRecords(), Keys: [sha256.Size]byte(g.GetKeysDigest()),
		})
	}
	return page, response.GetNextPageToken(), nil
}

// Offer implements storesync.Source.
func (r remote) Offer(ctx context.Context, of records.Group, lacks storesync.Lacks, take func(*tilthv1.Record) error) error {
	keys := func(from records.Key) ([]records.Key, error) {
		packed, err := r.RecordKeys(ctx, &tilthv1.ListRecordKeysRequest{Target: of.Target, WorkloadDigest: of.Workload, From: from[:]})
		if err != nil {
			return nil, err
		}
		page, err := r.unpack(packed)
		if err == nil && len(page) > 0 && page[0].Compare(from) < 0 {
			err = fmt.Errorf("%w: tracker %s lists keys out of order", records.ErrInvalid, r.Addr())
		}
		return page, err
	}
	get := func(keys []records.Key, visit func(*tilthv1.Record) error) error {
		return later(ctx, func() error {
			return r.GetRecords(ctx, &tilthv1.GetRecordsRequest{Target: of.Target, WorkloadDigest: of.Workload, Keys: records.PackKeys(keys)}, visit)
		})
	}
	return storesync.Pages{Keys: keys, Get: get}.Offer(ctx, of, lacks, take)
}

// Add implements storesync.Destination.
func (r remote) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	err = later(ctx, func() error {
		added, there, err = r.Import(ctx, storesync.Each(batch))
		return err
	})
	return added, there, err
}

// later repeats a call for as long as the tracker defers it for its rate limit, because an exchange makes many calls.
func later(ctx context.Context, call func() error) error {
	for {
		err := call()
		wait, off := wire.RetryAfter(err)
		if !off || retry.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// Lacking implements storesync.Destination.
func (r remote) Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error) {
	packed, err := r.LackingRecords(ctx, &tilthv1.FindLackingRecordsRequest{
		Target: of.Target, WorkloadDigest: of.Workload, Keys: records.PackKeys(keys),
	})
	if err != nil {
		return nil, err
	}
	return r.unpack(packed)
}

// unpack decodes keys sent by a tracker.
func (r remote) unpack(packed []byte) ([]records.Key, error) {
	keys, err := records.UnpackKeys(packed)
	if err == nil && len(keys) > wire.MaxRecordKeys {
		err = fmt.Errorf("%w: there are %d", records.ErrInvalid, len(keys))
	}
	if err != nil {
		return nil, fmt.Errorf("keys of tracker %s: %w", r.Addr(), err)
	}
	return keys, nil
}
