package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
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

// Restoration is the result of restoring a backup.
type Restoration struct {
	// Report is the verification of the backup, without damage.
	Report *records.Report
	// Aside is the path at which the replaced file is kept; empty if there was no file.
	Aside string
	// Lost is what the replaced file had and the backup lacks; nil if there was no file or it was unreadable, with the
	// reason in Unreadable.
	Lost       *Loss
	Unreadable error
}

// Loss is what one file has and another lacks.
type Loss struct {
	// Jobs are the ids of missing jobs, oldest first, at most a hundred; JobCount is their number.
	Jobs     []string
	JobCount uint64
	// Records is the number of missing measurements; Workloads is the number of affected groups.
	Records, Workloads uint64
}

const (
	restoringSuffix = ".restoring"
	replacedSuffix  = ".replaced-"
	maxLostJobs     = 100
)

// Restore verifies a copy of the backup and atomically replaces the records file at path with it, keeping the old file
// beside it. When the copy is next opened, all agents join again, and no lease of the lost generation is honoured. It
// returns ErrLocked if a tracker is using the file, and ErrDamaged for a damaged backup; then nothing has changed.
func Restore(ctx context.Context, backup, path string, now time.Time) (*Restoration, error) {
	r := &Restoration{}
	if err := r.run(ctx, backup, path, now); err != nil {
		return nil, fmt.Errorf("restore %s as %s: %w", backup, path, errors.Join(err, ignoreMissing(os.Remove(path+restoringSuffix))))
	}
	return r, nil
}

func (r *Restoration) run(ctx context.Context, backup, path string, now time.Time) error {
	if err := filesystem.MakeFolder(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	old, err := r.hold(path)
	if err != nil {
		return err
	}
	defer old.Close()
	made, err := os.Stat(backup)
	if err != nil {
		return explain(backup, err)
	}
	if is, err := os.Stat(path); err == nil && os.SameFile(made, is) {
		return errors.New("it is the same file")
	}
	// Verify the copy rather than the original, since the copy will be used.
	fresh := path + restoringSuffix
	if err := copyFile(ctx, backup, fresh); err != nil {
		return err
	}
	if r.Report, err = SealCopy(ctx, fresh, made.ModTime()); err != nil {
		return err
	}
	if err := r.compare(ctx, old.db, fresh); err != nil {
		return err
	}
	return r.replace(path, fresh, now)
}

// heldFile is a records file locked against other processes.
type heldFile struct {
	db   *DB // nil if unreadable or missing
	file *os.File
}

// Close releases the file.
func (h heldFile) Close() error {
	if h.db != nil {
		return guard(h.db.Close)
	}
	if h.file != nil {
		return h.file.Close()
	}
	return nil
}

// hold locks the file to be replaced.
func (r *Restoration) hold(path string) (heldFile, error) {
	db, err := open(path, Options{}, false)
	switch {
	case err == nil:
		return heldFile{db: db}, nil
	case errors.Is(err, records.ErrMissing):
		return heldFile{}, nil
	case errors.Is(err, records.ErrLocked):
		return heldFile{}, fmt.Errorf("%w: stop the tracker first", records.ErrLocked)
	}
	r.Unreadable = err
	f, err := filesystem.OpenRegular(path)
	if err != nil {
		return heldFile{}, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return heldFile{}, errors.Join(fmt.Errorf("%w: stop the tracker first", records.ErrLocked), f.Close())
	}
	return heldFile{file: f}, nil
}

// compare determines what will be lost.
func (r *Restoration) compare(ctx context.Context, old *DB, fresh string) error {
	if old == nil {
		return nil
	}
	db, err := OpenReadOnly(fresh, Options{})
	if err != nil {
		return err
	}
	lost, err := old.lacking(ctx, db)
	if errors.Is(err, records.ErrDamaged) {
		r.Unreadable, err = err, nil
	} else {
		r.Lost = lost
	}
	return errors.Join(err, db.Close())
}

// replace installs the fresh file and keeps the old one.
func (r *Restoration) replace(path, fresh string, now time.Time) error {
	if _, err := os.Stat(path); err == nil {
		if _, _, err := copyAttributes(path, fresh); err != nil {
			return err
		}
		r.Aside = path + replacedSuffix + now.UTC().Format("20060102T150405Z")
		if err := os.Link(path, r.Aside); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return errors.Join(os.Rename(fresh, path), filesystem.SyncFolder(filepath.Dir(path)))
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := filesystem.OpenRegular(from)
	if err != nil {
		return explain(from, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(contextWriter{ctx, out}, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// lacking returns what db has and other lacks.
func (db *DB) lacking(ctx context.Context, other *DB) (*Loss, error) {
	lost := &Loss{}
	err := db.view(func(tx *txn) error {
		return other.view(func(there *txn) error {
			if err := lost.countJobs(tx, there); err != nil {
				return err
			}
			return eachGroup(tx, records.EveryTarget, "", func(group []byte) error {
				if err := ctx.Err(); err != nil {
					return context.Cause(ctx)
				}
				lost.countRecords(tx, there, group)
				return nil
			})
		})
	})
	return lost, err
}

func (l *Loss) countJobs(tx, there *txn) error {
	jobs := there.table(bucketJobs)
	return tx.table(bucketJobs).each(func(id, _ []byte, err error) error {
		if err != nil || jobs.has(id) {
			return nil
		}
		l.JobCount++
		if len(l.Jobs) < maxLostJobs {
			l.Jobs = append(l.Jobs, string(id))
		}
		return nil
	})
}

// countRecords counts the records of a group that are missing there. The group's number may differ.
func (l *Loss) countRecords(tx, there *txn, group []byte) {
	here, number, before := tx.groupNumber(group), there.groupNumber(group), l.Records
	if here == nil {
		return
	}
	rows := there.table(bucketRecords)
	c := tx.table(bucketRecords).cursor()
	for k, _ := c.Seek(here); bytes.HasPrefix(k, here); k, _ = c.Next() {
		if number == nil || !rows.has(recordKey(number, withinGroup(k))) {
			l.Records++
		}
	}
	if l.Records > before {
		l.Workloads++
	}
}
