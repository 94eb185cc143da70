package recordsource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/staticsite"
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

// IsStatic reports whether a location is an export on a web server or its folder.
func IsStatic(where string) bool {
	scheme, _, is := strings.Cut(where, ":")
	if is && (scheme == "https" || scheme == "http" || scheme == "file") {
		return true
	}
	info, err := os.Stat(where)
	return err == nil && info.IsDir()
}

// ErrReadOnly is returned by imports into an export.
var ErrReadOnly = errors.New("an export of records is only read")

// Static is the read-only source of an export.
type Static struct{ *staticsite.Export }

// OpenStatic opens an export: https://HOST/PATH, file:///FOLDER, or a folder. With a key, its index must be
// signed by it.
func OpenStatic(ctx context.Context, where string, key *signing.PublicKey, o staticsite.ServerOptions) (Static, error) {
	var files staticsite.Files
	if strings.HasPrefix(where, "file:") {
		place, err := url.Parse(where)
		if err != nil || !filepath.IsAbs(place.Path) || place.Host != "" && place.Host != "localhost" {
			return Static{}, fmt.Errorf("%s: a folder on this machine is file:///FOLDER", where)
		}
		files = staticsite.Folder(filepath.Clean(strings.TrimSuffix(place.Path, staticsite.IndexName)))
	} else if strings.HasPrefix(where, "https:") || strings.HasPrefix(where, "http:") {
		server, err := staticsite.NewServer(where, o)
		if err != nil {
			return Static{}, err
		}
		files = server
	} else {
		files = staticsite.Folder(where)
	}
	if key != nil {
		files = staticsite.Signed{Files: files, Key: *key}
	}
	export, err := staticsite.Open(ctx, files)
	return Static{export}, err
}

// Best implements Source.
func (s Static) Best(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
	return s.Export.Best(ctx, target, numerics.String(), workloads...)
}

// Import implements Source.
func (Static) Import(context.Context, func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	return 0, 0, ErrReadOnly
}

// Lacking implements Peer. It always fails.
func (Static) Lacking(context.Context, records.Group, []records.Key) ([]records.Key, error) {
	return nil, ErrReadOnly
}

// Add implements Peer. It always fails.
func (Static) Add(context.Context, []*tilthv1.Record) (added, there uint64, err error) {
	return 0, 0, ErrReadOnly
}

// Close implements Source.
func (Static) Close() error { return nil }

// Peer is a side of an exchange of records.
type Peer interface {
	Source
	storesync.Source
	// Lacking and Add implement storesync.Destination.
	Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error)
	Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error)
}

// Groups implements storesync.Catalogue. Page tokens are hexadecimal, so they sort like names.
func (r remote) Groups(ctx context.Context, f storesync.Filter, after string) (page []storesync.Summary, next string, err error) {
	response, err := r.RecordGroups(ctx, &tilthv1.ListRecordGroupsRequest{Target: f.Target, WorkloadDigests: f.Workloads, PageToken: after})
	if err != nil {
		return nil, "", err
	}
	for _, g := range response.GetGroups() {
		if len(g.GetKeysDigest()) != sha256.Size {
			return nil, "", fmt.Errorf("%w: tracker %s sums up records by a digest of %d bytes", records.ErrInvalid, r.Addr(), len(g.GetKeysDigest()))
		}
		page = append(page, storesync.Summary{
			Group: records.Group{Target: g.GetTarget(), Workload: g.GetWorkloadDigest()}, Records: g.GetRecords(), Keys: [sha256.Size]byte(g.GetKeysDigest()),
		})
	}
	return page, response.GetNextPageToken(), nil
}

// Offer implements storesync.Source.
func (r remote) Offer(ctx context.Context, of records.Group, lacks storesync.Lacks, take func(*tilthv1.Record) error) error {
	keys := func(from records.Key) ([]records.Key, error) {
		packed, err := r.RecordKeys(ctx, &tilthv1.ListRecordKeysRequest{Target: of.Target, WorkloadDigest: of.Workload, From: from[:]})
		if err != nil {
			return nil, err
		}
		page, err := r.unpack(packed)
		if err == nil && len(page) > 0 && page[0].Compare(from) < 0 {
			err = fmt.Errorf("%w: tracker %s lists keys out of order", records.ErrInvalid, r.Addr())
		}
		return page, err
	}
	get := func(keys []records.Key, visit func(*tilthv1.Record) error) error {
		return later(ctx, func() error {
			return r.GetRecords(ctx, &tilthv1.GetRecordsRequest{Target: of.Target, WorkloadDigest: of.Workload, Keys: records.PackKeys(keys)}, visit)
		})
	}
	return storesync.Pages{Keys: keys, Get: get}.Offer(ctx, of, lacks, take)
}

// Add implements storesync.Destination.
func (r remote) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	err = later(ctx, func() error {
		added, there, err = r.Import(ctx, storesync.Each(batch))
		return err
	})
	return added, there, err
}

// later repeats a call for as long as the tracker defers it for its rate limit, because an exchange makes many calls.
func later(ctx context.Context, call func() error) error {
	for {
		err := call()
		wait, off := wire.RetryAfter(err)
		if !off || retry.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// Lacking implements storesync.Destination.
func (r remote) Lacking(ctx context.Context, of records.Group, keys []records.Key) ([]records.Key, error) {
	packed, err := r.LackingRecords(ctx, &tilthv1.FindLackingRecordsRequest{
		Target: of.Target, WorkloadDigest: of.Workload, Keys: records.PackKeys(keys),
	})
	if err != nil {
		return nil, err
	}
	return r.unpack(packed)
}

// unpack decodes keys sent by a tracker.
func (r remote) unpack(packed []byte) ([]records.Key, error) {
	keys, err := records.UnpackKeys(packed)
	if err == nil && len(keys) > wire.MaxRecordKeys {
		err = fmt.Errorf("%w: there are %d", records.ErrInvalid, len(keys))
	}
	if err != nil {
		return nil, fmt.Errorf("keys of tracker %s: %w", r.Addr(), err)
	}
	return keys, nil
}
