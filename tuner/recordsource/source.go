package recordsource

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/storesync"
)

// Source is a source of records.
type Source interface {
	// Best returns the fastest verified record of each workload on a target with a schedule that the numerics
	// level allows. Without workloads it returns all workloads at all levels; an empty target means all
	// targets. Workloads without a record are omitted.
	Best(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error)
	// List calls visit with every matching record. An empty target or workload matches all.
	List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error
	// Import adds the records that next returns until io.EOF, all or none.
	Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error)
	storesync.Catalogue
	io.Closer
}

// OpenFile opens a records file for reading or, if writable, also for importing, which creates a missing file. It logs
// damaged rows, which are omitted. While a local search has the file open, requests go to that process.
func OpenFile(path string, writable bool, log *slog.Logger) (Peer, error) {
	if socket := records.Announced(path); socket != "" {
		return Dial("unix:"+socket, log)
	}
	f, err := openFile(path, writable, log)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func openFile(path string, writable bool, log *slog.Logger) (file, error) {
	open := bolt.OpenReadOnly
	if writable {
		open = bolt.Open
	}
	db, err := open(path, bolt.Options{})
	if err != nil {
		return file{}, err
	}
	db.OnDamage(func(d *records.Damage) {
		log.Warn("damaged row left out: see 'tilth records verify'", "records", path, "bucket", d.Bucket, "error", d.Err)
	})
	return file{db, storesync.Store{Measurements: db}}, nil
}

// Dial returns the source of a tracker; options are those of client.Dial.
func Dial(addr string, log *slog.Logger, options ...grpc.DialOption) (Peer, error) {
	c, err := client.Dial(addr, log, options...)
	if err != nil {
		return nil, err
	}
	return Of(c), nil
}

// Of returns the records of a tracker that a client is connected to.
func Of(c *client.Client) Peer { return remote{c} }

// file is a records file, as a side of an exchange like any store.
type file struct {
	*bolt.DB
	storesync.Store
}

// Best implements Source.
func (f file) Best(_ context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
	if len(workloads) == 0 {
		best, _, err := f.BestPage(target, "", math.MaxInt, math.MaxInt)
		return best, err
	}
	var found []*tilthv1.Record
	for _, w := range workloads {
		record, err := f.BestAllowed(target, w, numerics.String())
		if errors.Is(err, records.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, record)
	}
	return found, nil
}

type remote struct{ *client.Client }

// Best implements Source.
func (r remote) Best(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
	return r.BestRecords(ctx, target, numerics.String(), workloads...)
}

// List implements Source.
func (r remote) List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	return r.ListRecords(ctx, target, workload, visit)
}

// Import implements Source.
func (r remote) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	return r.ImportRecords(ctx, next)
}
