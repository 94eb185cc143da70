package storesync

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// batchRecords and batchBytes end a batch, which is held in memory, and sent again after an interruption.
const batchRecords, batchBytes = 4096, 8 << 20

// batches sends records in batches.
type batches struct {
	to       Destination
	dry      bool
	check    func(*tilthv1.Record) error // may be nil
	incoming *records.Incoming
	report   *Report

	pending   []*tilthv1.Record
	sizeBytes int
	left      leftWorkload
}

// leftWorkload is the canonical form of the workload carried by the last refused record. Only the first of many
// records has it, so it is passed on to the next record of the group.
type leftWorkload struct {
	of        records.Group
	canonical []byte
}

// take queues a record, or counts why it is refused.
func (b *batches) take(ctx context.Context, r *tilthv1.Record) error {
	if err := b.admit(r); err != nil {
		b.report.refuse(err)
		if w := workloadOf(r); w != nil {
			b.left = leftWorkload{groupOf(r), w}
		}
		return nil
	}
	if b.dry {
		b.report.Sent++
		return nil
	}
	b.pending, b.sizeBytes = append(b.pending, r), b.sizeBytes+proto.Size(r)
	if len(b.pending) < batchRecords && b.sizeBytes < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

// admit checks a record, whose workload may have come with an earlier one.
func (b *batches) admit(r *tilthv1.Record) error {
	if err := b.incoming.Admit(r); err != nil {
		return err
	}
	b.giveWorkload(r)
	if b.check == nil {
		return nil
	}
	return b.check(r)
}

// giveWorkload adds the canonical form saved from a refused record, unless that form was the reason for the refusal.
func (b *batches) giveWorkload(r *tilthv1.Record) {
	if b.left.canonical == nil || groupOf(r) != b.left.of {
		return
	}
	if len(r.GetWorkload()) == 0 {
		r.Workload = b.left.canonical
		if b.incoming.Admit(r) != nil {
			r.Workload = nil
		}
	}
	b.left = leftWorkload{}
}

// flush sends the queued records. It drops them whether or not the other side stored them.
func (b *batches) flush(ctx context.Context) error {
	batch := b.pending
	if b.pending, b.sizeBytes = nil, 0; len(batch) == 0 {
		return nil
	}
	sent, there, err := b.to.Add(ctx, batch)
	b.report.Sent += sent
	b.report.There += there
	return err
}

// lacks asks the other side which keys it lacks, and counts the others.
func (b *batches) lacks(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error) {
	lacking, err := b.to.Lacking(ctx, of, keys)
	if err == nil && len(lacking) > len(keys) {
		err = fmt.Errorf("%w: of %d records %d are said to be lacking", records.ErrInvalid, len(keys), len(lacking))
	}
	if err == nil {
		b.report.There += uint64(len(keys) - len(lacking))
	}
	return lacking, err
}
