package storesync

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Options configure an exchange.
type Options struct {
	Filter Filter
	// Dry only determines what would be sent.
	Dry bool
	// Check, if set, returns an error that wraps records.ErrInvalid for a record to refuse.
	Check func(*tilthv1.Record) error
}

// Sync copies the records that a side lacks. The report describes what was done, even with an error: all records
// counted as sent are stored. Invalid records are refused and the others continue. Sync may be repeated at any time,
// after an error or a crash; it does not send stored records again. It holds few records in memory.
func Sync(ctx context.Context, from Source, to Destination, o Options) (*Report, error) {
	b := newBatches(to, o)
	have, stop := iter.Pull2(groups(ctx, to, o.Filter))
	defer stop()
	other, err, more := have()
	for s, failed := range groups(ctx, from, o.Filter) {
		for more && err == nil && other.Name() < s.Name() {
			other, err, more = have()
		}
		if failed != nil {
			err = failed
		}
		if err != nil {
			return b.report, err
		}
		if more && other == s {
			b.report.There += s.Records
			continue
		}
		if err := b.offered(ctx, from, s.Group); err != nil {
			return b.report, err
		}
	}
	if err != nil {
		return b.report, err
	}
	return b.report, b.flush(ctx)
}

// offered takes the offered records of one group and refuses records of others.
func (b *batches) offered(ctx context.Context, from Source, of records.Group) error {
	return from.Offer(ctx, of, b.lacks, func(r *tilthv1.Record) error {
		if got := groupOf(r); got != of {
			b.report.refuse(&records.InvalidError{
				Field: "record", Text: fmt.Sprintf("of workload %.64q on target %.256q was not asked for", got.Workload, got.Target),
			})
			return nil
		}
		return b.take(ctx, r)
	})
}

func newBatches(to Destination, o Options) *batches {
	return &batches{to: to, dry: o.Dry, check: o.Check, report: &Report{}}
}

// groups iterates over the summaries of a side. It fails unless they are sorted, since otherwise it might never end or
// miss equal groups.
func groups(ctx context.Context, of Catalogue, f Filter) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		last := ""
		for after := ""; ; {
			page, next, err := of.Groups(ctx, f, after)
			for _, s := range page {
				if s.Name() <= last {
					err = fmt.Errorf("%w: groups of records are not in order", records.ErrInvalid)
					break
				}
				if last = s.Name(); f.Wants(s.Group) && !yield(s, nil) {
					return
				}
			}
			if err == nil && next != "" && next <= after {
				err = fmt.Errorf("%w: pages of groups of records are not in order", records.ErrInvalid)
			}
			if err != nil {
				yield(Summary{}, err)
				return
			}
			if after = next; after == "" {
				return
			}
		}
	}
}

// batchRecords and batchBytes end a batch, which is held in memory, and sent again after an interruption.
const batchRecords, batchBytes = 4096, 8 << 20

// batches sends records in batches.
type batches struct {
	to     Destination
	dry    bool
	check  func(*tilthv1.Record) error // may be nil
	report *Report

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
	if err := records.Admit(r); err != nil {
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
		if records.Admit(r) != nil {
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
