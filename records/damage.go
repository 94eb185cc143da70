package records

import (
	"bytes"
	"errors"
	"fmt"
)

// Damage is a page or a row of a records file that is not as it was written. It is an error that wraps ErrDamaged.
type Damage struct {
	// Bucket is the bucket of the row or of the page; empty for pages of none.
	Bucket string
	// Key is the row's; nil for a page.
	Key []byte
	// Page is the number of the page; 0 for a row.
	Page uint64
	// Err wraps ErrDamaged.
	Err error
}

func damagedRow(bucket, key []byte, err error) error {
	return &Damage{Bucket: string(bucket), Key: bytes.Clone(key), Err: err}
}

// Error implements error.
func (d *Damage) Error() string {
	switch {
	case d.Key != nil:
		return fmt.Sprintf("row %q of %s: %v", d.Key, d.Bucket, d.Err)
	case d.Bucket != "":
		return fmt.Sprintf("page %d of %s: %v", d.Page, d.Bucket, d.Err)
	}
	return fmt.Sprintf("page %d: %v", d.Page, d.Err)
}

// Unwrap implements errors.Unwrap.
func (d *Damage) Unwrap() error { return d.Err }

// mostNoted bounds how many damaged rows a store remembers; more are told of again each time.
const mostNoted = 10_000

// OnDamage has f told of all damage that is met, and was met since the file was opened, once each. f must not block,
// nor call the store.
func (db *DB) OnDamage(f func(*Damage)) {
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
	var d *Damage
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
func (db *DB) note(d *Damage) bool {
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
