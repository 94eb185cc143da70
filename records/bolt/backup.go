package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

// Backup implements records.File. Pages that commits replace meanwhile stay allocated until the backup ends. The
// output is itself a records file.
func (db *DB) Backup(w io.Writer) (sizeBytes int64, err error) {
	err = db.view(func(tx *txn) error {
		sizeBytes, err = tx.WriteTo(w)
		return err
	})
	return sizeBytes, err
}

const partialSuffix = ".partial"

// BackupTo implements records.File. A killed backup leaves a file ending in ".partial".
func (db *DB) BackupTo(ctx context.Context, path string, at time.Time) (*records.Report, error) {
	partial := path + partialSuffix
	report, err := db.backUpTo(ctx, partial, at)
	if err == nil {
		err = errors.Join(os.Rename(partial, path), filesystem.SyncFolder(filepath.Dir(path)))
	}
	if err != nil {
		return nil, fmt.Errorf("back up the records to %s: %w", path, errors.Join(err, ignoreMissing(os.Remove(partial))))
	}
	return report, nil
}

func (db *DB) backUpTo(ctx context.Context, path string, at time.Time) (*records.Report, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = db.Backup(contextWriter{ctx, f})
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return SealCopy(ctx, path, at)
}

// SealCopy marks a file as a copy made at a time (see MarkCopy) and verifies it. Damage is an error.
func SealCopy(ctx context.Context, path string, at time.Time) (*records.Report, error) {
	if err := MarkCopy(path, at); err != nil {
		return nil, err
	}
	report, err := Verify(ctx, path)
	if err != nil {
		return nil, err
	}
	return report, report.Failure(path)
}

// contextWriter writes until a context ends.
type contextWriter struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (w contextWriter) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(b)
}
