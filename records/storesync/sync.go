package storesync

import (
	"context"
	"fmt"
	"iter"

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
	b, err := newBatches(to, o)
	if err != nil {
		return &Report{}, err
	}
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
			b.report.refuse(notAsked(got))
			return nil
		}
		return b.take(ctx, r)
	})
}

func notAsked(of records.Group) error {
	return &records.InvalidError{Field: "record", Text: fmt.Sprintf("of workload %.64q on target %.256q was not asked for", of.Workload, of.Target)}
}

func newBatches(to Destination, o Options) (*batches, error) {
	incoming, err := records.NewIncoming()
	if err != nil {
		return nil, err
	}
	return &batches{to: to, dry: o.Dry, check: o.Check, incoming: incoming, report: &Report{}}, nil
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
