package records

import (
	"io"
)

// Backup writes the whole file as it is at one instant, with all that was committed before the call, and returns its size. Commits go
// on meanwhile; what they replace takes room in the file until the backup has ended. What was written is itself a records file.
func (db *DB) Backup(w io.Writer) (sizeBytes int64, err error) {
	err = db.view(func(tx *txn) error {
		sizeBytes, err = tx.WriteTo(w)
		return err
	})
	return sizeBytes, err
}
