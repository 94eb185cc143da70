package records

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protodelim"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// Records of an import that go into one write, and writes that may be under way.
	importAtOnce, importWrites = 500, 4
)

// Import adds the records that next returns until io.EOF. Nothing is added before the last has come and all are valid: an error of next
// or of a record leaves the store as it was. Records that are already there are skipped, so an import that was interrupted later, by
// a crash or a full disk, is completed by doing it again. However many there are, few are in memory: they wait in a file beside the
// store.
func (db *DB) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	spool, err := newSpool(db.path)
	if err != nil {
		return 0, 0, fmt.Errorf("import into records file %s: %w", db.path, err)
	}
	defer spool.Close()
	if err := collect(spool, next); err != nil {
		return 0, 0, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return 0, 0, fmt.Errorf("import into records file %s: %w", db.path, err)
	}
	return db.addAll(ctx, spool)
}

// newSpool makes a file that is gone when it is closed, or its process ends.
func newSpool(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".import-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// collect writes all records to the spool.
func collect(spool io.Writer, next func() (*tilthv1.Record, error)) error {
	w := bufio.NewWriterSize(spool, 1<<20)
	for {
		record, err := next()
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if err := Validate(record); err != nil {
			return err
		}
		// The job belongs to the tracker that made it.
		record.JobId = ""
		if _, err := protodelim.MarshalTo(w, record); err != nil {
			return fmt.Errorf("keep records to import: %w", err)
		}
	}
}

// addAll adds the records of a spool, some in a write.
func (db *DB) addAll(ctx context.Context, spool io.Reader) (imported, skipped uint64, err error) {
	var under []*Pending
	in := bufio.NewReaderSize(spool, 1<<20)
	for more := true; more; {
		w := &Write{}
		if more, err = w.addSome(in, &imported, &skipped); err != nil {
			return 0, 0, fmt.Errorf("import into records file %s: %w", db.path, err)
		}
		if under = append(under, db.Commit(w)); len(under) < importWrites && more {
			continue
		}
		for _, p := range under {
			// The counts belong to the writer until it is done.
			if err := p.Wait(ctx); err != nil {
				return 0, 0, err
			}
		}
		under = nil
	}
	return imported, skipped, nil
}

// addSome adds the next records of a spool, and says whether there may be more.
func (w *Write) addSome(in *bufio.Reader, imported, skipped *uint64) (more bool, err error) {
	for range importAtOnce {
		record := &tilthv1.Record{}
		err := protodelim.UnmarshalOptions{MaxSize: -1}.UnmarshalFrom(in, record)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		w.addRecord(record, func(added bool) {
			if added {
				*imported++
			} else {
				*skipped++
			}
		})
	}
	return true, nil
}
