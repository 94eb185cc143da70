package bolt

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/proto"
)

// scrubBytes bounds the rows checked in one transaction, except for a single larger row.
const scrubBytes = 256 << 10

// Scrub implements records.File.
func (db *DB) Scrub(ctx context.Context, pace func(rows, sizeBytes int) error) error {
	if !db.sealed {
		return nil
	}
	for _, name := range append(append([][]byte(nil), buckets...), later...) {
		if bytes.Equal(name, bucketMeta) {
			continue // its rows are read on every opening
		}
		for from := []byte(nil); ; {
			next, rows, size, err := db.scrubSome(name, from)
			if err != nil {
				return err
			}
			db.touch(int64(size))
			if err := pace(rows, size); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			// A key out of order might lead back.
			if next == nil || bytes.Compare(next, from) <= 0 {
				break
			}
			from = next
		}
	}
	return nil
}

// scrubSome checks some rows of a bucket from a key on (nil for the first), and returns the start of the next ones,
// nil after the last.
func (db *DB) scrubSome(name, from []byte) (next []byte, rows, size int, err error) {
	kind := messages[string(name)]
	err = db.view(func(tx *txn) error {
		t := tx.table(name)
		if t.bucket == nil {
			return nil
		}
		c := t.cursor()
		for k, stored := c.Seek(from); k != nil; k, stored = c.Next() {
			value, err := t.open(k, stored)
			if size >= scrubBytes && err == nil {
				next = bytes.Clone(k)
				return nil
			}
			rows, size = rows+1, size+len(k)+len(stored)
			if err == nil && kind != nil {
				err = t.parse(k, value, proto.Clone(kind))
			}
			tx.skipDamage(err)
		}
		return nil
	})
	return next, rows, size, err
}
