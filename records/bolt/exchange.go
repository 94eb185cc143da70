package bolt

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// GroupPage implements records.Measurements.
func (db *DB) GroupPage(target, after string, limit int) (groups []records.Group, next string, err error) {
	from, beyond := records.NamesOf(target)
	err = db.view(func(tx *txn) error {
		rows, looked := tx.table(bucketGroups), 0
		c, all := rows.cursor(), tx.table(bucketRecords).cursor()
		key, stored := c.Seek([]byte(max(from, after)))
		if after != "" && string(key) == after {
			key, stored = c.Next()
		}
		for ; key != nil && string(key) < beyond; key, stored = c.Next() {
			if looked == limit {
				return nil
			}
			looked, next = looked+1, string(key)
			number, err := rows.open(key, stored)
			if tx.skipDamage(err) {
				continue
			}
			if first, _ := all.Seek(number); first != nil && bytes.HasPrefix(first, number) {
				groups = append(groups, records.GroupOf(key))
			}
		}
		next = ""
		return nil
	})
	return groups, next, err
}

// KeyPage implements records.Measurements.
func (db *DB) KeyPage(of records.Group, from records.Key, limit int) (keys []records.Key, err error) {
	err = db.view(func(tx *txn) error {
		number := tx.groupNumber([]byte(of.Name()))
		if number == nil {
			return nil
		}
		all := tx.table(bucketRecords)
		c := all.cursor()
		for k, v := c.Seek(recordKey(number, from)); bytes.HasPrefix(k, number) && len(keys) < limit; k, v = c.Next() {
			if _, err := all.open(k, v); tx.skipDamage(err) {
				continue // so that another side may send it again
			}
			keys = append(keys, withinGroup(k))
		}
		return nil
	})
	return keys, err
}

// RecordsOf implements records.Measurements.
func (db *DB) RecordsOf(of records.Group, keys []records.Key, maxBytes int) (found []*tilthv1.Record, looked int, err error) {
	group := []byte(of.Name())
	err = db.view(func(tx *txn) error {
		number := tx.groupNumber(group)
		all := tx.table(bucketRecords)
		for size := 0; looked < len(keys) && (looked == 0 || size < maxBytes); looked++ {
			key := recordKey(number, keys[looked])
			if number == nil || !all.has(key) {
				continue
			}
			r := &tilthv1.Record{}
			if err := all.load(key, r); tx.skipDamage(err) {
				continue
			}
			complete(tx, r, group, len(found) == 0)
			found, size = append(found, r), size+proto.Size(r)
		}
		return nil
	})
	return found, looked, err
}
