package storesync

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// SyncLines is like Sync for a sequence of records in any order: next returns them until io.EOF. They need not be
// valid. Records that do not match the filter are skipped.
func SyncLines(ctx context.Context, next func() (*tilthv1.Record, error), to Destination, o Options) (*Report, error) {
	b := newBatches(to, o)
	wanted := func() (*tilthv1.Record, error) {
		for {
			r, err := next()
			if err != nil || o.Filter.Wants(groupOf(r)) {
				return r, err
			}
		}
	}
	take := func(r *tilthv1.Record) error { return b.take(ctx, r) }
	if err := OfferLines(ctx, wanted, b.lacks, take); err != nil {
		return b.report, err
	}
	return b.report, b.flush(ctx)
}

func groupOf(r *tilthv1.Record) records.Group {
	return records.Group{Target: r.GetTarget(), Workload: r.GetWorkloadDigest()}
}

// workloadOf returns the canonical form of a record's workload if it has one that matches its digest. The record need
// not be valid otherwise.
func workloadOf(r *tilthv1.Record) []byte {
	if w := r.GetWorkload(); len(w) > 0 && records.IsDigest(r.GetWorkloadDigest(), w) {
		return w
	}
	return nil
}

// OfferLines asks the other side which of a sequence of records it lacks, a few thousand at a time, and calls take for
// those. next returns the records until io.EOF.
func OfferLines(ctx context.Context, next func() (*tilthv1.Record, error), lacks Lacks, take func(*tilthv1.Record) error) error {
	l := &lines{lacks: lacks, take: take}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r, err := next()
		if errors.Is(err, io.EOF) {
			return l.offer(ctx)
		}
		if err == nil {
			err = l.add(ctx, r)
		}
		if err != nil {
			return err
		}
	}
}

// lines holds records that were read and not yet offered.
type lines struct {
	lacks Lacks
	take  func(*tilthv1.Record) error

	groups    map[records.Group]*readGroup
	count     int
	sizeBytes int
	// last is the group of the last record; later records often belong to it.
	last *readGroup
}

// readGroup holds the records read from one group, without duplicates.
type readGroup struct {
	records.Group
	// workload is the canonical form; only the first of many records has it.
	workload []byte
	records  map[records.Key]*tilthv1.Record
}

func (l *lines) add(ctx context.Context, r *tilthv1.Record) error {
	if err := records.Validate(r); err != nil {
		if w := workloadOf(r); w != nil {
			l.last = &readGroup{Group: groupOf(r), workload: w} // so that the group's next record gets it
		}
		return l.take(r) // take refuses it; its key is meaningless
	}
	g := l.group(groupOf(r))
	if len(r.GetWorkload()) > 0 {
		g.workload = r.GetWorkload()
	}
	g.records[records.KeyOf(r.GetMeasurement())] = r
	l.count, l.sizeBytes = l.count+1, l.sizeBytes+proto.Size(r)
	if l.count < keysPerLook && l.sizeBytes < batchBytes {
		return nil
	}
	return l.offer(ctx)
}

// group returns the group of a record and makes it the last.
func (l *lines) group(of records.Group) *readGroup {
	if g := l.groups[of]; g != nil {
		l.last = g
		return g
	}
	g := &readGroup{Group: of, records: map[records.Key]*tilthv1.Record{}}
	if l.last != nil && l.last.Workload == of.Workload {
		g.workload = l.last.workload
	}
	if l.groups == nil {
		l.groups = map[records.Group]*readGroup{}
	}
	l.groups[of], l.last = g, g
	return g
}

// offer offers the pending records and drops them.
func (l *lines) offer(ctx context.Context) error {
	all := slices.SortedFunc(maps.Values(l.groups), func(a, b *readGroup) int { return cmp.Compare(a.Name(), b.Name()) })
	l.groups, l.count, l.sizeBytes = nil, 0, 0
	for _, g := range all {
		if err := l.offerGroup(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) offerGroup(ctx context.Context, g *readGroup) error {
	lacked, err := l.lacks(ctx, g.Group, slices.SortedFunc(maps.Keys(g.records), records.Key.Compare))
	if err != nil {
		return err
	}
	for i, key := range lacked {
		r := g.records[key]
		if r == nil {
			continue // the other side cannot lack it
		}
		if i == 0 {
			r.Workload = g.workload
		}
		if err := l.take(r); err != nil {
			return err
		}
	}
	g.records = nil
	return nil
}
