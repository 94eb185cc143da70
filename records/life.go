package records

import (
	"crypto/rand"
	"errors"
	"strings"

	"go.etcd.io/bbolt"
)

// lifeLetters are how many letters name a life: 30 bits.
const lifeLetters = 6

// newLife draws the name of a life.
func newLife() string { return strings.ToLower(rand.Text()[:lifeLetters]) }

// Life names this life of the file, which began when it was opened for writing: a few letters and digits, drawn at random. Who gives
// names to what the file keeps makes it part of them. After a backup was restored, or a copy was put in the file's place, names that were
// given in the life that is lost are then nobody's. Empty when the file is open for reading.
func (db *DB) Life() string { return db.life }

// beginLife makes the file one of this version, and begins its life.
func (db *DB) beginLife(tx *bbolt.Tx) error {
	for _, name := range later {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := (&txn{Tx: tx, db: db}).table(bucketMeta)
	return errors.Join(putVersion(tx), meta.put(keyLife, []byte(db.life)))
}
