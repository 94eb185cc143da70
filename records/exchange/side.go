package exchange

import (
	"context"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Filter says which records are meant.
type Filter struct {
	// Target is a fingerprint; empty = every target.
	Target string
	// Workloads are digests, sorted; none = every workload.
	Workloads []string
}

// Wants says whether the records of a group are meant.
func (f Filter) Wants(g records.Group) bool {
	if f.Target != "" && f.Target != g.Target {
		return false
	}
	_, listed := slices.BinarySearch(f.Workloads, g.Workload)
	return listed || len(f.Workloads) == 0
}

// Catalogue tells which groups of records a side has.
type Catalogue interface {
	// Groups sums up some groups that pass a filter, in the order of their names, from the first after a mark on
	// (empty = the beginning). next is the mark for the page that follows, empty after the last one; marks are in the
	// order of what they stand for. A page may be empty.
	Groups(ctx context.Context, f Filter, after string) (page []Summary, next string, err error)
}

// Lacks says which of some keys of a group, in order, a side lacks.
type Lacks func(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)

// From is a side that records come from. What it hands out may be anything: it is validated.
type From interface {
	Catalogue
	// Offer asks of the records of a group which of them the other side lacks, and has take called with those. The
	// first of a group, or of a few thousand, has the workload's canonical form, if it is known.
	Offer(ctx context.Context, of records.Group, lacks Lacks, take func(*tilthv1.Record) error) error
}

// To is a side that records are brought to.
type To interface {
	Catalogue
	// Lacking are those of some keys of a group, in order, that no record has.
	Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)
	// Add adds records, all or none. Those that are already there are skipped. They may be changed.
	Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error)
}

// Nothing is a side without records, such as a file that is not there yet. It takes none.
type Nothing struct{}

// Groups implements Catalogue.
func (Nothing) Groups(context.Context, Filter, string) ([]Summary, string, error) {
	return nil, "", nil
}

// Lacking implements To.
func (Nothing) Lacking(_ context.Context, _ records.Group, keys []records.Key) ([]records.Key, error) {
	return keys, nil
}

// Add implements To.
func (Nothing) Add(context.Context, []*tilthv1.Record) (added, there uint64, err error) {
	return 0, 0, records.ErrMissing
}
