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

	"github.com/tilth-dev/tilth/internal/atomicfile"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/exchange"
)

const (
	linesSuffix = ".jsonl"
	zipSuffix   = ".gz"
)

// IsLines says whether a file is an export as JSON lines, by its name: FILE.jsonl or FILE.jsonl.gz.
func IsLines(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(path, zipSuffix), linesSuffix)
}

// ReadLines has read called with the records of an export as JSON lines, which are not validated.
func ReadLines(path string, read func(next func() (*tilthv1.Record, error)) error) error {
	f, err := os.Open(path)
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

// Lines is an export as JSON lines that records are added to. They are gathered in a records file beside it, which is
// written as a whole in the export's place in the end, and removed. Until then the export is as it was.
type Lines struct {
	Peer
	path, dir string
}

// OpenLines reads an export, if it is there.
func OpenLines(ctx context.Context, path string, log *slog.Logger) (*Lines, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("write records: %w", err)
	}
	gathered, err := OpenFile(filepath.Join(dir, "records.db"), true, log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l := &Lines{Peer: gathered, path: path, dir: dir}
	err = ReadLines(path, func(next func() (*tilthv1.Record, error)) error {
		report, err := exchange.SyncLines(ctx, next, l.Peer, exchange.Options{})
		if refused := report.Refused(); err == nil && len(refused) > 0 {
			err = explainLines(path, errors.New(refused[0].First))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Write puts all records in the export's place.
func (l *Lines) Write(ctx context.Context, leftOut func(why error)) error {
	return atomicfile.Write(l.path, func(w io.Writer) error {
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

// Close removes what was gathered. What was not written is lost.
func (l *Lines) Close() error { return errors.Join(l.Peer.Close(), os.RemoveAll(l.dir)) }
