package exchange

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// A batch ends with so many records, or with the first that makes it so large: so much is in memory, and is sent again
// when the exchange is interrupted.
const batchRecords, batchBytes = 4096, 8 << 20

// batches hands records over in batches.
type batches struct {
	to       To
	dry      bool
	incoming *records.Incoming
	report   *Report

	pending   []*tilthv1.Record
	sizeBytes int
	left      leftWorkload
}

// leftWorkload is the canonical form of the workload that the last refused record with one had: the next of its group
// is to have it, since only the first of many does.
type leftWorkload struct {
	of        records.Group
	canonical []byte
}

// take adds a record, or counts why not.
func (b *batches) take(ctx context.Context, r *tilthv1.Record) error {
	if err := b.incoming.Admit(r); err != nil {
		b.report.refuse(err)
		if w := workloadOf(r); w != nil {
			b.left = leftWorkload{groupOf(r), w}
		}
		return nil
	}
	b.giveWorkload(r)
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

// giveWorkload gives a record the canonical form that one before it was refused with, unless it was refused for that.
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

// flush hands over what is there. What it has been given is forgotten whether or not it was stored.
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

// lacks asks the other side, and counts what is there.
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
