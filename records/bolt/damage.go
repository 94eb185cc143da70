package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tilth-dev/tilth/records"
)

func damagedRow(bucket, key []byte, err error) error {
	return &records.Damage{Bucket: string(bucket), Key: bytes.Clone(key), Err: err}
}

// maxNoted bounds the remembered damaged rows; further ones are reported repeatedly.
const maxNoted = 10_000

// OnDamage implements records.File.
func (db *DB) OnDamage(f func(*records.Damage)) {
	db.mu.Lock()
	db.onDamage = f
	early := db.early
	db.early = nil
	db.mu.Unlock()
	for _, d := range early {
		f(d)
	}
}

// Damaged implements records.File.
func (db *DB) Damaged() uint64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.damaged
}

// skipDamage reports whether err is damage. If so, it records the row and sets it aside if the store can do without
// it.
func (tx *txn) skipDamage(err error) bool {
	var d *records.Damage
	if !errors.As(err, &d) {
		return false
	}
	if tx.db.note(d) && droppableBuckets[d.Bucket] {
		tx.db.later(func(tx *txn) error { return tx.setAside(d) })
	}
	return true
}

// unlessDamage returns err unless it is damage.
func (tx *txn) unlessDamage(err error) error {
	if tx.skipDamage(err) {
		return nil
	}
	return err
}

// note counts and reports a damaged row; false if that was already done.
func (db *DB) note(d *records.Damage) bool {
	name := fmt.Sprintf("%d %s\x00%s", d.Page, d.Bucket, d.Key)
	db.mu.Lock()
	if db.noted[name] {
		db.mu.Unlock()
		return false
	}
	if len(db.noted) < maxNoted {
		db.noted[name] = true
	}
	db.damaged++
	tell := db.onDamage
	if tell == nil && len(db.early) < maxDamage {
		db.early = append(db.early, d)
	}
	db.mu.Unlock()
	if tell != nil {
		tell(d)
	}
	return true
}

// later submits an operation to the writer if the file is open for writing.
func (db *DB) later(op func(*txn) error) {
	if db.stopped != nil {
		db.maintain(op)
	}
}

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

// guard calls f and converts a panic in bbolt, or a fault in the mapped file, to ErrDamaged. bbolt trusts its pages
// and would otherwise crash the process when one was overwritten.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", records.ErrDamaged, r)
		}
	}()
	return f()
}
