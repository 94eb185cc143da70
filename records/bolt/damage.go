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
