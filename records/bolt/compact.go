package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

const (
	// compactBytes bounds a transaction of a compaction.
	compactBytes  = 32 << 20
	compactSuffix = ".compacting"
)

// Compact rewrites the records file at path without free pages, sets damaged rows aside, and returns its size before
// and after. The new file replaces the old one atomically once it is on disk. It returns ErrLocked if another process
// has the file open, and ErrMissing if it does not exist.
func Compact(path string) (before, after int64, err error) {
	named := path
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, 0, explain(named, err)
	}
	// Keep the old file open until it is replaced, against other writers. Processes waiting for the lock check
	// for a replacement (see open).
	old, err := open(path, Options{}, false)
	if errors.Is(err, records.ErrLocked) {
		return 0, 0, fmt.Errorf("compact records file %s: %w: stop it first", path, records.ErrLocked)
	}
	if err != nil {
		return 0, 0, err
	}
	// A killed process may have left one; the lock on the records file serializes compactions.
	temporary := path + compactSuffix
	err = errors.Join(ignoreMissing(os.Remove(temporary)), old.writeCompact(temporary))
	if err == nil {
		before, after, err = copyAttributes(path, temporary)
	}
	if err == nil {
		err = errors.Join(os.Rename(temporary, path), filesystem.SyncFolder(filepath.Dir(path)))
	}
	if err != nil {
		err = fmt.Errorf("compact records file %s, which is as it was: %w", path, err)
		return 0, 0, errors.Join(err, ignoreMissing(os.Remove(temporary)), old.Close())
	}
	return before, after, old.Close()
}

// writeCompact writes all rows to a new file and syncs it.
func (db *DB) writeCompact(path string) error {
	err := guard(func() error {
		fresh, err := bbolt.Open(path, 0o644, &bbolt.Options{
			PageSize:     pageBytes,
			FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		})
		if err != nil {
			return err
		}
		err = copyRows(fresh, db)
		fresh.NoSync, fresh.NoFreelistSync = false, false
		return errors.Join(err, fresh.Update(putVersion), fresh.Sync(), fresh.Close())
	})
	if errors.Is(err, records.ErrDamaged) {
		return explain(db.path, err)
	}
	return err
}

// copyAttributes copies the owner and the permissions of the old file, and returns the sizes of both.
func copyAttributes(path, compacted string) (before, after int64, err error) {
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

// errReplaced reports that the path no longer names the opened file.
var errReplaced = errors.New("the file was replaced while it was opened")

// replaced reports whether path no longer names the open file, because a compaction finished while waiting for the
// lock.
func replaced(path string, file *os.File) bool {
	is, err := file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(path)
	return err != nil || !os.SameFile(is, named)
}
