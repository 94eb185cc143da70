package storesync

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Filter selects records.
type Filter struct {
	// Target is a fingerprint; empty for all targets.
	Target string
	// Workloads are sorted digests; none for all workloads.
	Workloads []string
}

// Wants reports whether the filter selects a group.
func (f Filter) Wants(g records.Group) bool {
	if f.Target != "" && f.Target != g.Target {
		return false
	}
	_, listed := slices.BinarySearch(f.Workloads, g.Workload)
	return listed || len(f.Workloads) == 0
}

// Catalogue lists the groups of records that a side has.
type Catalogue interface {
	// Groups returns summaries of some groups that match a filter, sorted by name, starting after a mark ("" for the
	// beginning). next is the mark for the following page, "" after the last. Marks sort like the names they stand
	// for. A page may be empty.
	Groups(ctx context.Context, f Filter, after string) (page []Summary, next string, err error)
}

// Lacks returns which of some sorted keys of a group a side lacks.
type Lacks func(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)

// Source is the side that records come from. Its records are validated, so it may return anything.
type Source interface {
	Catalogue
	// Offer calls take for the records of a group that the other side lacks, as determined by lacks. The first record
	// of the group, or of each few thousand, has the workload's canonical form if known.
	Offer(ctx context.Context, of records.Group, lacks Lacks, take func(*tilthv1.Record) error) error
}

// Destination is the side that records are added to.
type Destination interface {
	Catalogue
	// Lacking returns which of some sorted keys of a group have no record.
	Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)
	// Add stores all records or none, skipping existing ones. It may modify them.
	Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error)
}

// EmptySide is a side without records, such as a missing file. It accepts none.
type EmptySide struct{}

// Groups implements Catalogue.
func (EmptySide) Groups(context.Context, Filter, string) ([]Summary, string, error) {
	return nil, "", nil
}

// Lacking implements Destination.
func (EmptySide) Lacking(_ context.Context, _ records.Group, keys []records.Key) ([]records.Key, error) {
	return keys, nil
}

// Add implements Destination.
func (EmptySide) Add(context.Context, []*tilthv1.Record) (added, there uint64, err error) {
	return 0, 0, records.ErrMissing
}

// Report is the result of an exchange.
type Report struct {
	// Sent counts records now on the other side, or that would be in a dry run. There counts those it already had.
	Sent, There uint64
	// refused are records that are invalid or were not requested, by reason.
	refused map[string]*Refusal
}

// Refusal counts records refused for one reason.
type Refusal struct {
	// Reason is the invalid field.
	Reason  string `json:"reason"`
	Records uint64 `json:"records"`
	// First is the error of the first refused record.
	First string `json:"first"`
}

// refuse counts a refused record.
func (r *Report) refuse(err error) {
	reason := "record"
	if invalid, is := errors.AsType[*records.InvalidError](err); is {
		reason = cmp.Or(invalid.Field, reason)
	}
	if r.refused == nil {
		r.refused = map[string]*Refusal{}
	}
	if r.refused[reason] == nil {
		r.refused[reason] = &Refusal{Reason: reason, First: records.Cut(err.Error(), maxReasonBytes)}
	}
	r.refused[reason].Records++
}

// maxReasonBytes bounds the text of a refusal.
const maxReasonBytes = 512

// Refused returns the refusals sorted by reason.
func (r *Report) Refused() (all []Refusal) {
	for _, reason := range slices.Sorted(maps.Keys(r.refused)) {
		all = append(all, *r.refused[reason])
	}
	return all
}

// Keyed is the part of a store that summaries need; see records.Measurements.
type Keyed interface {
	GroupPage(target, after string, limit int) (groups []records.Group, next string, err error)
	KeyPage(of records.Group, from records.Key, limit int) ([]records.Key, error)
}

// Summary summarizes the records of a group. Sides with equal summaries have the same records.
type Summary struct {
	records.Group
	// Records is their number.
	Records uint64
	// Keys is the digest of their sorted keys.
	Keys [sha256.Size]byte
}

const (
	// groupsPerLook and keysPerLook bound one read.
	groupsPerLook = 512
	keysPerLook   = wire.MaxRecordKeys
	// A page of summaries ends at groupsPerPage, or with the group that reaches keysPerPage, which takes a fraction of
	// a second to read.
	groupsPerPage = 512
	keysPerPage   = 1 << 19
)

// Summaries implements Catalogue.Groups for a store. limit bounds the page; 0 means the default.
func Summaries(s Keyed, f Filter, after string, limit int) (page []Summary, next string, err error) {
	if limit <= 0 || limit > groupsPerPage {
		limit = groupsPerPage
	}
	for keys := uint64(0); ; after = next {
		groups, more, err := s.GroupPage(f.Target, after, groupsPerLook)
		if err != nil {
			return nil, "", err
		}
		for _, g := range groups {
			if !f.Wants(g) {
				continue
			}
			if len(page) == limit || keys >= keysPerPage {
				return page, page[len(page)-1].Name(), nil
			}
			sum, err := summarise(s, g)
			if err != nil {
				return nil, "", err
			}
			if keys += sum.Records; sum.Records > 0 {
				page = append(page, sum)
			}
		}
		if next = more; next == "" {
			return page, "", nil
		}
	}
}

func summarise(s Keyed, of records.Group) (Summary, error) {
	sum, digest := Summary{Group: of}, sha256.New()
	for from := (records.Key{}); ; {
		keys, err := s.KeyPage(of, from, keysPerLook)
		if err != nil || len(keys) == 0 {
			digest.Sum(sum.Keys[:0])
			return sum, err
		}
		digest.Write(records.PackKeys(keys))
		sum.Records += uint64(len(keys))
		from = keys[len(keys)-1].After()
	}
}

// Lacking returns which of some sorted keys of a group have no record in the store. It scans the store's keys in
// parallel.
func Lacking(s Keyed, of records.Group, keys []records.Key) (lacking []records.Key, err error) {
	for len(keys) > 0 {
		have, err := s.KeyPage(of, keys[0], keysPerLook)
		if err != nil {
			return nil, err
		}
		if len(have) == 0 {
			return append(lacking, keys...), nil
		}
		for last := have[len(have)-1]; len(keys) > 0 && keys[0].Compare(last) <= 0; keys = keys[1:] {
			at, there := slices.BinarySearchFunc(have, keys[0], records.Key.Compare)
			if have = have[at:]; !there {
				lacking = append(lacking, keys[0])
			}
		}
	}
	return lacking, nil
}

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
	return Pages{
		Keys: func(from records.Key) ([]records.Key, error) { return s.KeyPage(of, from, keysPerLook) },
		Get: func(keys []records.Key, visit func(*tilthv1.Record) error) error {
			return Get(s.Measurements, of, keys, visit)
		},
	}.Offer(ctx, of, lacks, take)
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
