package storesync

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

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
