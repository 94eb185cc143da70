package bolt

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/proto"
)

// scrubBytes of rows are checked in a transaction, but for one that is larger by itself.
const scrubBytes = 256 << 10

// Scrub checks all rows once while the file is in use; what is damaged is noted, and set aside (see OnDamage). pace is
// called after every few hundred kilobytes with how many rows and bytes were checked; its error ends the scrub.
func (db *DB) Scrub(ctx context.Context, pace func(rows, sizeBytes int) error) error {
	if !db.sealed {
		return nil
	}
	for _, name := range append(append([][]byte(nil), buckets...), later...) {
		if bytes.Equal(name, bucketMeta) {
			continue // its rows are read each time that the file is opened
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
			// A key that is out of order might lead back.
			if next == nil || bytes.Compare(next, from) <= 0 {
				break
			}
			from = next
		}
	}
	return nil
}

// scrubSome checks some rows of a bucket from a key on (nil = the first), and returns where the next ones begin; nil
// after the last.
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
			tx.passOver(err)
		}
		return nil
	})
	return next, rows, size, err
}
