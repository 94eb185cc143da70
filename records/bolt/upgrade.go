package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/internal/filesystem"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// copyRows writes all rows of a file to a new one. Damaged rows are set aside, except in bucket open,
// whose keys lead to other rows. Rows out of order move to their proper places.
func copyRows(to *bbolt.DB, from *DB) error {
	return from.bolt.View(func(tx *bbolt.Tx) error {
		c := &copying{to: to}
		err := tx.ForEach(func(name []byte, rows *bbolt.Bucket) error { return c.bucket(name, rows) })
		return errors.Join(err, c.end())
	})
}

// copying writes to a new file in transactions of bounded size.
type copying struct {
	to    *bbolt.DB
	tx    *bbolt.Tx
	bytes int
}

func (c *copying) bucket(name []byte, rows *bbolt.Bucket) error {
	if err := c.room(0); err != nil {
		return err
	}
	fresh, err := c.tx.CreateBucketIfNotExists(name)
	if err != nil {
		return err
	}
	if err := fresh.SetSequence(rows.Sequence()); err != nil {
		return err
	}
	return rows.ForEach(func(key, value []byte) error {
		if !bytes.Equal(name, bucketMeta) && !bytes.Equal(name, bucketOpen) {
			if _, err := unseal(name, key, value); err != nil {
				return c.setAside(name, key, value)
			}
		}
		return c.put(name, key, value)
	})
}

// setAside moves a damaged row to bucket damaged.
func (c *copying) setAside(bucket, key, stored []byte) error {
	if err := c.room(0); err != nil {
		return err
	}
	if _, err := c.tx.CreateBucketIfNotExists(bucketDamaged); err != nil {
		return err
	}
	key = damagedKey(&records.Damage{Bucket: string(bucket), Key: key})
	return c.put(bucketDamaged, key, seal(bucketDamaged, key, bytes.Clone(stored)))
}

func (c *copying) put(bucket, key, value []byte) error {
	if err := c.room(len(key) + len(value)); err != nil {
		return err
	}
	b := c.tx.Bucket(bucket)
	b.FillPercent = 1
	return b.Put(key, value)
}

// room starts a transaction unless one with space is open.
func (c *copying) room(size int) (err error) {
	if c.bytes += size; c.tx != nil && c.bytes > compactBytes {
		if err := c.end(); err != nil {
			return err
		}
	}
	if c.tx == nil {
		c.tx, err = c.to.Begin(true)
		c.bytes = size
	}
	return err
}

// end commits the pending transaction.
func (c *copying) end() error {
	if c.tx == nil {
		return nil
	}
	tx := c.tx
	c.tx = nil
	return tx.Commit()
}

// Generation implements records.Store. The name is a few random letters and digits, so names of objects created in a
// generation lost with a restored backup are never reused. It is empty if the file is open read-only.
func (db *DB) Generation() string { return db.generation }

// Restored implements records.File.
func (db *DB) Restored() time.Time { return db.restored }

// MarkCopy marks a file as a copy. When it is next opened for writing, all agents' sessions become void, so that no
// lease of the lost generation is honoured.
func MarkCopy(path string, at time.Time) error {
	db, err := open(path, Options{}, false)
	if err != nil {
		return err
	}
	err = guard(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keyCopied, []byte(at.UTC().Format(time.RFC3339Nano)))
		})
	})
	if err != nil {
		err = fmt.Errorf("mark records file %s as a copy: %w", path, err)
	}
	return errors.Join(err, db.Close())
}

// beginGeneration starts a generation.
func (db *DB) beginGeneration(bolt *bbolt.Tx) error {
	tx := &txn{Tx: bolt, db: db}
	meta := tx.table(bucketMeta)
	// Anything written from now on did not come from the conversion.
	return errors.Join(meta.put(keyGeneration, []byte(db.generation)), meta.remove(keyConversion), tx.settleCopy())
}

// settleCopy voids all sessions if the file is a copy.
func (tx *txn) settleCopy() error {
	meta := tx.Bucket(bucketMeta)
	mark := meta.Get(keyCopied)
	if mark == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(mark))
	if err != nil {
		at = time.Unix(0, 0) // still a copy
	}
	tx.db.restored = at
	return errors.Join(tx.voidSessions(), meta.Delete(keyCopied))
}

// voidSessions marks all agents as gone.
func (tx *txn) voidSessions() error {
	var all []*tilthv1.Agent
	agents := tx.table(bucketAgents)
	err := agents.each(func(name, value []byte, err error) error {
		a := &tilthv1.Agent{}
		if err == nil {
			err = agents.parse(name, value, a)
		}
		if !tx.skipDamage(err) {
			all = append(all, a)
		}
		return nil
	})
	for _, a := range all {
		err = errors.Join(err, agents.put([]byte(a.GetSpec().GetName()), records.Encode(gone(a))))
	}
	return err
}

// gone marks an agent as gone.
func gone(a *tilthv1.Agent) *tilthv1.Agent {
	a.State = tilthv1.AgentState_AGENT_STATE_GONE
	return a
}

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
