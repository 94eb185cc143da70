package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/internal/disk"
	"github.com/tilth-dev/tilth/records"
)

const (
	// compactBytes of entries go into one transaction.
	compactBytes  = 32 << 20
	compactSuffix = ".compacting"
)

// Compact writes the records file at path anew without the room that is free in it, and with its damaged rows set
// aside, and returns its size before and after. The new file takes the place of the old one in one step once it is on
// disk, so that a crash leaves one or the other. ErrLocked when another process has the file open, ErrMissing when
// there is none.
func Compact(path string) (before, after int64, err error) {
	named := path
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, 0, explain(named, err)
	}
	// Held open until the new file is in place, so that nobody writes to the old one meanwhile; whoever waits for it
	// looks again (see open).
	old, err := open(path, Options{}, false)
	if errors.Is(err, records.ErrLocked) {
		return 0, 0, fmt.Errorf("compact records file %s: %w: stop it first", path, records.ErrLocked)
	}
	if err != nil {
		return 0, 0, err
	}
	// One is left by a process that was killed; the lock on the records file keeps others from making it.
	temporary := path + compactSuffix
	err = errors.Join(ignoreMissing(os.Remove(temporary)), old.writeCompact(temporary))
	if err == nil {
		before, after, err = dressAs(path, temporary)
	}
	if err == nil {
		err = errors.Join(os.Rename(temporary, path), disk.SyncFolder(filepath.Dir(path)))
	}
	if err != nil {
		err = fmt.Errorf("compact records file %s, which is as it was: %w", path, err)
		return 0, 0, errors.Join(err, ignoreMissing(os.Remove(temporary)), old.Close())
	}
	return before, after, old.Close()
}

// writeCompact writes all that the file has to a new file, down to the disk.
func (db *DB) writeCompact(path string) error {
	err := guard(func() error {
		fresh, err := bbolt.Open(path, 0o644, &bbolt.Options{
			PageSize:     pageBytes,
			FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		})
		if err != nil {
			return err
		}
		return errors.Join(copyRows(fresh, db), finish(fresh))
	})
	if errors.Is(err, records.ErrDamaged) {
		return explain(db.path, err)
	}
	return err
}

// finish has a file that was written without syncing reach the disk.
func finish(fresh *bbolt.DB) error {
	fresh.NoSync, fresh.NoFreelistSync = false, false
	return errors.Join(fresh.Update(putVersion), fresh.Sync(), fresh.Close())
}

// dressAs gives the compacted file the owner and the permissions of the old one, and returns the sizes of both.
func dressAs(path, compacted string) (before, after int64, err error) {
	was, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	is, err := os.Stat(compacted)
	if err != nil {
		return 0, 0, err
	}
	if owner, ok := was.Sys().(*syscall.Stat_t); ok {
		err = os.Chown(compacted, int(owner.Uid), int(owner.Gid))
	}
	return was.Size(), is.Size(), errors.Join(err, os.Chmod(compacted, was.Mode().Perm()))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// errReplaced says that the file at the path is another than the one that was opened.
var errReplaced = errors.New("the file was replaced while it was opened")

// replaced says whether the file at path is not the open one any more: it was compacted while its lock was waited for.
func replaced(path string, file *os.File) bool {
	is, err := file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(path)
	return err != nil || !os.SameFile(is, named)
}
