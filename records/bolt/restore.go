package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/records"
)

// Restoration is what came of restoring a backup.
type Restoration struct {
	// Report is what the check of the backup found: no damage.
	Report *records.Report
	// Aside is where the file is kept that was replaced; empty when there was none.
	Aside string
	// Lost is what the replaced file had and the backup lacks; nil when there was no file, or it could not be read:
	// see Unreadable.
	Lost       *Loss
	Unreadable error
}

// Loss is what a file has that another one lacks.
type Loss struct {
	// Jobs are the ids of jobs, the oldest first, at most a hundred of the JobCount there are.
	Jobs     []string
	JobCount uint64
	// Records are how many measurements, of so many workloads on targets.
	Records, Workloads uint64
}

const (
	restoringSuffix = ".restoring"
	replacedSuffix  = ".replaced-"
	mostLostJobs    = 100
)

// Restore puts a copy of the backup in the place of the records file at path, in one step, after it was verified. The
// file that was there is kept beside it. The copy is marked as one: when it is opened next, all agents join anew, and
// no lease of the life that is lost is honoured. ErrLocked when a tracker runs on the file, ErrDamaged when the backup
// is; nothing was changed then.
func Restore(ctx context.Context, backup, path string, now time.Time) (*Restoration, error) {
	r := &Restoration{}
	if err := r.run(ctx, backup, path, now); err != nil {
		return nil, fmt.Errorf("restore %s as %s: %w", backup, path, errors.Join(err, ignoreMissing(os.Remove(path+restoringSuffix))))
	}
	return r, nil
}

func (r *Restoration) run(ctx context.Context, backup, path string, now time.Time) error {
	if err := disk.MakeFolder(filepath.Dir(path), 0o700); err != nil {
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
	// The copy is verified, not what it was copied from: it is what will be used.
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

// heldFile is a records file that nobody else can open until it is closed.
type heldFile struct {
	db   *DB // nil when it cannot be read, or is not there
	file *os.File
}

// Close lets others open the file.
func (h heldFile) Close() error {
	if h.db != nil {
		return guard(h.db.Close)
	}
	if h.file != nil {
		return h.file.Close()
	}
	return nil
}

// hold keeps others from opening the file that is to be replaced.
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
	f, err := os.Open(path)
	if err != nil {
		return heldFile{}, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return heldFile{}, errors.Join(fmt.Errorf("%w: stop the tracker first", records.ErrLocked), f.Close())
	}
	return heldFile{file: f}, nil
}

// compare finds out what is lost.
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

// replace puts the fresh file in its place, and keeps what was there.
func (r *Restoration) replace(path, fresh string, now time.Time) error {
	if _, err := os.Stat(path); err == nil {
		if _, _, err := dressAs(path, fresh); err != nil {
			return err
		}
		r.Aside = path + replacedSuffix + now.UTC().Format("20060102T150405Z")
		if err := os.Link(path, r.Aside); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return errors.Join(os.Rename(fresh, path), disk.SyncFolder(filepath.Dir(path)))
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
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
