package bolt

import (
	"bytes"
	"errors"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tilth-dev/tilth/records"
)

// droppableBuckets lists the buckets whose damaged rows are moved to bucket damaged. Rows of jobs stay in place, so
// that look-ups of the job report them.
var droppableBuckets = map[string]bool{
	string(bucketRecords): true, string(bucketBest): true, string(bucketGroups): true, string(bucketWorkloads): true,
	string(bucketAgents): true, string(bucketDevices): true, string(bucketClosed): true, string(bucketImports): true,
	string(bucketEnded): true, string(bucketDropping): true,
}

// setAside moves a damaged row to bucket damaged. A row that look-ups cannot find, since its key is out of order,
// stays until the file is compacted.
func (tx *txn) setAside(d *records.Damage) error {
	from := tx.table([]byte(d.Bucket))
	k, stored := from.bucket.Cursor().Seek(d.Key)
	if bytes.Equal(k, d.Key) {
		if _, err := from.open(k, stored); err == nil {
			return nil // it has been rewritten
		}
		stored = bytes.Clone(stored)
		if err := from.remove(d.Key); errors.Is(err, bolterrors.ErrIncompatibleValue) {
			return nil // it looks like a bucket
		} else if err != nil {
			return err
		}
		if err := tx.table(bucketDamaged).put(damagedKey(d), stored); err != nil {
			return err
		}
	}
	if len(d.Key) < groupBytes || d.Bucket != string(bucketBest) && d.Bucket != string(bucketRecords) {
		return nil
	}
	return tx.choosePast(d.Key[:groupBytes])
}

// damagedKey returns bucket 0 key.
func damagedKey(d *records.Damage) []byte { return append(append([]byte(d.Bucket), 0), d.Key...) }

// choosePast recomputes the bests of a group if one of them was set aside.
func (tx *txn) choosePast(number []byte) error {
	g := tx.groups.numbered(number)
	for level := range records.Levels {
		_, _, err := storedBest(tx, bestKey(number, level))
		if errors.Is(err, records.ErrDamaged) {
			return g.chooseAgain(tx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chooseLater submits recomputing the bests of a group to the writer.
func (db *DB) chooseLater(number []byte) {
	number = bytes.Clone(number)
	db.later(func(tx *txn) error { return tx.choosePast(number) })
}
