package bolt

import (
	"bytes"
	"errors"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tilth-dev/tilth/records"
)

// doneWithout are the buckets whose damaged rows are moved to the bucket of damaged ones. Rows of jobs stay where they
// are: whoever asks for the job is told which of them is damaged.
var doneWithout = map[string]bool{
	string(bucketRecords): true, string(bucketBest): true, string(bucketGroups): true, string(bucketWorkloads): true,
	string(bucketAgents): true, string(bucketDevices): true, string(bucketClosed): true, string(bucketImports): true,
	string(bucketEnded): true, string(bucketDropping): true,
}

// setAside moves a damaged row to the bucket of damaged ones. One that only a walk over all rows meets, since its key
// is out of order, stays until the file is compacted.
func (tx *txn) setAside(d *records.Damage) error {
	from := tx.table([]byte(d.Bucket))
	k, stored := from.bucket.Cursor().Seek(d.Key)
	if bytes.Equal(k, d.Key) {
		if _, err := from.open(k, stored); err == nil {
			return nil // it was written anew
		}
		stored = bytes.Clone(stored)
		if err := from.remove(d.Key); errors.Is(err, bolterrors.ErrIncompatibleValue) {
			return nil // it passes for a bucket
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

// damagedKey is bucket 0 key.
func damagedKey(d *records.Damage) []byte { return append(append([]byte(d.Bucket), 0), d.Key...) }

// choosePast chooses the best of a group again if one of them was set aside.
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

// chooseLater has the writer choose the best of a group again.
func (db *DB) chooseLater(number []byte) {
	number = bytes.Clone(number)
	db.later(func(tx *txn) error { return tx.choosePast(number) })
}
