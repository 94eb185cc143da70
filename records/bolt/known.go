package bolt

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/records"
)

// Known implements records.Measurements. It decodes only few of the records.
func (db *DB) Known(target, workloadDigest, numerics, candidate string, limit int) (known records.Known, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return known, err
	}
	group := []byte(records.Group{Target: target, Workload: workloadDigest}.Name())
	var read int64
	defer func() { db.touch(read) }()
	err = db.view(func(tx *txn) error {
		best, err := bestOf(tx, group, level)
		if err == nil {
			known.Best = best.GetMeasurement()
		} else if !errors.Is(err, records.ErrNotFound) {
			return err
		}
		number := tx.groupNumber(group)
		if number == nil {
			return nil
		}
		rows := tx.table(bucketRecords)
		c := rows.cursor()
		for k, v := lastBefore(c, following(number)); bytes.HasPrefix(k, number) && known.Trials < limit; k, v = c.Prev() {
			read += int64(len(v))
			value, err := rows.open(k, v)
			if tx.skipDamage(err) {
				continue
			}
			known.Trials++
			if err := known.Scan(value, candidate); err != nil && !tx.skipDamage(damagedValue(bucketRecords, k, err)) {
				return err
			}
		}
		return nil
	})
	return known, err
}

// lastBefore moves to the last key less than bound; nil is no bound.
func lastBefore(c *bbolt.Cursor, bound []byte) (key, value []byte) {
	if bound != nil {
		if k, _ := c.Seek(bound); k != nil {
			return c.Prev()
		}
	}
	return c.Last()
}

// following returns the least key greater than all keys with a prefix, or nil.
func following(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			next := bytes.Clone(prefix[:i+1])
			next[i]++
			return next
		}
	}
	return nil
}
