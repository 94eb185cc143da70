package storesync

import (
	"context"
	"fmt"
	"io"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Store is the side of a store.
type Store struct{ records.Measurements }

// Groups implements Catalogue.
func (s Store) Groups(_ context.Context, f Filter, after string) ([]Summary, string, error) {
	return Summaries(s.Measurements, f, after, 0)
}

// Lacking implements Destination.
func (s Store) Lacking(_ context.Context, of records.Group, keys []records.Key) ([]records.Key, error) {
	return Lacking(s.Measurements, of, keys)
}

// Add implements Destination.
func (s Store) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	return s.Import(ctx, Each(batch))
}

// Each returns an iterator over a batch, which ends with io.EOF.
func Each(batch []*tilthv1.Record) func() (*tilthv1.Record, error) {
	return func() (*tilthv1.Record, error) {
		if len(batch) == 0 {
			return nil, io.EOF
		}
		r := batch[0]
		batch = batch[1:]
		return r, nil
	}
}

// Offer implements Source.
func (s Store) Offer(ctx context.Context, of records.Group, lacks Lacks, take func(*tilthv1.Record) error) error {
	pages := Pages{
		Keys: func(from records.Key) ([]records.Key, error) { return s.KeyPage(of, from, keysPerLook) },
		Get: func(keys []records.Key, visit func(*tilthv1.Record) error) error {
			return Get(s.Measurements, of, keys, visit)
		},
	}
	return pages.Offer(ctx, of, lacks, take)
}

// Pages reads the records of a group in pages.
type Pages struct {
	// Keys returns some keys from a key on, in order; none after the last.
	Keys func(from records.Key) ([]records.Key, error)
	// Get visits those of the given records that exist.
	Get func(keys []records.Key, visit func(*tilthv1.Record) error) error
}

// Offer implements Source.Offer. It returns an error if Get yields more records than requested.
func (p Pages) Offer(ctx context.Context, of records.Group, lacks Lacks, take func(*tilthv1.Record) error) error {
	for from := (records.Key{}); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		page, err := p.Keys(from)
		if err != nil || len(page) == 0 {
			return err
		}
		lacked, err := lacks(ctx, of, page)
		if err != nil {
			return err
		}
		if len(lacked) > 0 {
			if err := p.Get(lacked, atMost(len(lacked), take)); err != nil {
				return err
			}
		}
		from = page[len(page)-1].After()
	}
}

// atMost fails after n records.
func atMost(n int, take func(*tilthv1.Record) error) func(*tilthv1.Record) error {
	return func(r *tilthv1.Record) error {
		if n--; n < 0 {
			return fmt.Errorf("%w: received more records than requested", records.ErrInvalid)
		}
		return take(r)
	}
}

// bytesPerLook bounds the records held in memory.
const bytesPerLook = 2 << 20

// Get visits those of the given records of a store that exist, in order. If the records are large, several of them
// have the workload's canonical form.
func Get(s records.Measurements, of records.Group, keys []records.Key, visit func(*tilthv1.Record) error) error {
	for len(keys) > 0 {
		found, looked, err := s.RecordsOf(of, keys, bytesPerLook)
		if err != nil {
			return err
		}
		for _, r := range found {
			if err := visit(r); err != nil {
				return err
			}
		}
		keys = keys[looked:]
	}
	return nil
}
