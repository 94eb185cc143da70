package recordsource

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/storesync"
)

const (
	linesSuffix = ".jsonl"
	zipSuffix   = ".gz"
)

// IsLines reports whether a file is an export as JSON lines, by its name: FILE.jsonl or FILE.jsonl.gz.
func IsLines(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(path, zipSuffix), linesSuffix)
}

// ReadLines calls read with the records of an export as JSON lines, which are not validated. With a key, the
// file must be signed by it.
func ReadLines(path string, key *signing.PublicKey, read func(next func() (*tilthv1.Record, error)) error) error {
	open := os.Open
	if key != nil {
		open = func(path string) (*os.File, error) { return signing.OpenVerified(path, *key) }
	}
	f, err := open(path)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, zipSuffix) {
		zip, err := gzip.NewReader(f)
		if err != nil {
			return explainLines(path, fmt.Errorf("%w: %v", records.ErrDamaged, err))
		}
		in = zip
	}
	lines, err := records.NewReader(in)
	if err != nil {
		return explainLines(path, err)
	}
	return read(func() (*tilthv1.Record, error) {
		r, err := lines.ReadAny()
		if err != nil && !errors.Is(err, io.EOF) {
			err = explainLines(path, err)
		}
		return r, err
	})
}

func explainLines(path string, err error) error {
	return fmt.Errorf("read records from %s: %w: export them again with 'tilth records export'", path, err)
}

// Lines is an export as JSON lines to which one process at a time adds records. They are collected in a
// temporary records file beside it. Write replaces the export as a whole; until then it is unchanged.
type Lines struct {
	Peer
	path    string
	dir     string // of the temporary records file
	lock    *filesystem.Lock
	there   bool // whether the export existed
	changed bool // whether records were added
}

// LockLines locks an export for writing. It returns filesystem.ErrLocked if another process holds the lock.
func LockLines(path string) (*filesystem.Lock, error) {
	lock, err := filesystem.TryLock(beside(path) + ".lock")
	switch {
	case errors.Is(err, filesystem.ErrLocked):
		return nil, fmt.Errorf("write records to %s: %w, which writes it: try again when that has ended", path, err)
	case err != nil:
		return nil, fmt.Errorf("write records: %w", err)
	}
	return lock, nil
}

// beside returns the prefix of temporary files beside an export.
func beside(path string) string { return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)) }

// OpenLines reads an export, if it exists. It returns filesystem.ErrLocked while another process writes it.
func OpenLines(ctx context.Context, path string, log *slog.Logger) (*Lines, error) {
	lock, err := LockLines(path)
	if err != nil {
		return nil, err
	}
	l := &Lines{path: path, dir: beside(path) + ".tmp", lock: lock}
	if err := l.open(ctx, log); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lines) open(ctx context.Context, log *slog.Logger) error {
	if err := errors.Join(os.RemoveAll(l.dir), os.Mkdir(l.dir, 0o700)); err != nil { // a killed process may have left its folder
		return fmt.Errorf("write records: %w", err)
	}
	gathered, err := openFile(filepath.Join(l.dir, "records.db"), true, log)
	if err != nil {
		return err
	}
	l.Peer = gathered
	err = ReadLines(l.path, nil, func(next func() (*tilthv1.Record, error)) error { return l.gather(ctx, gathered.DB, next) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l.there = err == nil
	return err
}

// gatheredAtOnce and gatheredBytes bound the records in memory.
const gatheredAtOnce, gatheredBytes = 4096, 8 << 20

// gather adds an export's records, which keep their original jobs.
func (l *Lines) gather(ctx context.Context, into *bolt.DB, next func() (*tilthv1.Record, error)) error {
	w, size := &records.Write{}, 0
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return into.Commit(w).Wait(ctx)
		}
		if err != nil {
			return err
		}
		job := r.GetJobId()
		if err := records.Admit(r); err != nil {
			return explainLines(l.path, err)
		}
		r.JobId = job
		w.AddRecord(r)
		if size += proto.Size(r); len(w.Ops()) < gatheredAtOnce && size < gatheredBytes {
			continue
		}
		if err := into.Commit(w).Wait(ctx); err != nil {
			return err
		}
		w, size = &records.Write{}, 0
	}
}

// Add implements storesync.Destination.
func (l *Lines) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	return l.Import(ctx, storesync.Each(batch))
}

// Import implements Source.
func (l *Lines) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	imported, skipped, err = l.Peer.Import(ctx, next)
	l.changed = l.changed || imported > 0
	return imported, skipped, err
}

// Write replaces the export, unless nothing changed.
func (l *Lines) Write(ctx context.Context, leftOut func(why error)) error {
	if l.there && !l.changed {
		return nil
	}
	return filesystem.WriteFile(l.path, func(w io.Writer) error {
		all := func(visit func(*tilthv1.Record) error) error { return l.List(ctx, "", "", visit) }
		if !strings.HasSuffix(l.path, zipSuffix) {
			_, err := records.Export(w, all, leftOut)
			return err
		}
		zip := gzip.NewWriter(w)
		_, err := records.Export(zip, all, leftOut)
		return errors.Join(err, zip.Close())
	})
}

// Close removes the temporary records file. Unwritten records are lost.
func (l *Lines) Close() (err error) {
	if l.Peer != nil {
		err = l.Peer.Close()
	}
	return errors.Join(err, os.RemoveAll(l.dir), l.lock.Unlock())
}
