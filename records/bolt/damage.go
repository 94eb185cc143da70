package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/records"
)

func damagedRow(bucket, key []byte, err error) error {
	return &records.Damage{Bucket: string(bucket), Key: bytes.Clone(key), Err: err}
}

// mostNoted bounds how many damaged rows a store remembers; more are told of again each time.
const mostNoted = 10_000

// OnDamage has f told of all damage that is met, and was met since the file was opened, once each. f must not block,
// nor call the store.
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

// Damaged is how many damaged rows were met since the file was opened.
func (db *DB) Damaged() uint64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.damaged
}

// passOver says whether err is damage. The row, which is served to nobody, is noted, and set aside where the store
// does without it.
func (tx *txn) passOver(err error) bool {
	var d *records.Damage
	if !errors.As(err, &d) {
		return false
	}
	if tx.db.note(d) && doneWithout[d.Bucket] {
		tx.db.later(func(tx *txn) error { return tx.setAside(d) })
	}
	return true
}

// unlessPassedOver is err unless it is damage.
func (tx *txn) unlessPassedOver(err error) error {
	if tx.passOver(err) {
		return nil
	}
	return err
}

// note counts a damaged row, and tells of it; false when that was done before.
func (db *DB) note(d *records.Damage) bool {
	name := fmt.Sprintf("%d %s\x00%s", d.Page, d.Bucket, d.Key)
	db.mu.Lock()
	if db.noted[name] {
		db.mu.Unlock()
		return false
	}
	if len(db.noted) < mostNoted {
		db.noted[name] = true
	}
	db.damaged++
	tell := db.onDamage
	if tell == nil && len(db.early) < mostDamage {
		db.early = append(db.early, d)
	}
	db.mu.Unlock()
	if tell != nil {
		tell(d)
	}
	return true
}

// later has the writer do something soon, if the file is open for writing.
func (db *DB) later(op func(*txn) error) {
	if db.stopped != nil {
		db.maintain(op)
	}
}
