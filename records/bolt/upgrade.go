package bolt

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/records"
)

// openUpgraded opens a file for writing. It first rewrites a file without checksums, like a compaction.
func openUpgraded(path string, opts Options) (*DB, error) {
	db, err := open(path, opts, false)
	if err != nil || db.sealed {
		return db, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if _, _, err := Compact(path); err != nil {
		return nil, err
	}
	return open(path, opts, false)
}

// copyRows writes all rows of a file to a new one with checksums. Damaged rows are set aside, except in bucket open,
// whose keys lead to other rows. Rows out of order move to their proper places.
func copyRows(to *bbolt.DB, from *DB) error {
	return from.bolt.View(func(tx *bbolt.Tx) error {
		c := &copying{to: to, sealed: from.sealed}
		err := tx.ForEach(func(name []byte, rows *bbolt.Bucket) error { return c.bucket(name, rows) })
		if err == nil && !from.sealed {
			err = c.bests(tx)
		}
		return errors.Join(err, c.end())
	})
}

// copying writes to a new file in transactions of bounded size.
type copying struct {
	to     *bbolt.DB
	sealed bool // whether rows of the old file have checksums
	tx     *bbolt.Tx
	bytes  int
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
		switch {
		case bytes.Equal(name, bucketMeta), c.sealed && bytes.Equal(name, bucketOpen):
		case !c.sealed:
			value = seal(name, key, bytes.Clone(value))
		default:
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

// bests gives every group a row for the best at each level.
func (c *copying) bests(tx *bbolt.Tx) error {
	old := &txn{Tx: tx, db: &DB{}}
	return tx.Bucket(bucketGroups).ForEach(func(_, number []byte) error {
		for level := range records.Levels {
			key, _, err := bestAllowed(old, number, level)
			if errors.Is(err, records.ErrDamaged) {
				continue // a missing row is recomputed later
			}
			if err != nil {
				return err
			}
			row := bestKey(number, level)
			if err := c.put(bucketBest, row, seal(bucketBest, row, bytes.Clone(key))); err != nil {
				return err
			}
		}
		return nil
	})
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
