package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Life names this life of the file, which began when it was opened for writing: a few letters and digits, drawn at
// random. Who gives names to what the file keeps makes it part of them. After a backup was restored, or a copy was put
// in the file's place, names that were given in the life that is lost are then nobody's. Empty when the file is open
// for reading.
func (db *DB) Life() string { return db.life }

// Restored is when the copy was made as which this life began; zero when it goes on from the one before.
func (db *DB) Restored() time.Time { return db.restored }

// MarkCopy marks a file as the copy of one that goes on. When it is next opened for writing, the sessions of all
// agents are void, so that no lease of the life that is lost by then is honoured.
func MarkCopy(path string, at time.Time) error {
	db, err := open(path, Options{}, false)
	if err != nil {
		return err
	}
	err = guard(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keyCopied, []byte(at.UTC().Format(time.RFC3339Nano)))
		})
	})
	if err != nil {
		err = fmt.Errorf("mark records file %s as a copy: %w", path, err)
	}
	return errors.Join(err, db.Close())
}

// beginLife makes the file one of this version, and begins its life.
func (db *DB) beginLife(bolt *bbolt.Tx) error {
	tx := &txn{Tx: bolt, db: db}
	meta := tx.table(bucketMeta)
	// What is written from here on was not copied.
	return errors.Join(tx.addBuckets(), putVersion(bolt), meta.put(keyLife, []byte(db.life)), meta.remove(keyConversion), tx.settleCopy())
}

// settleCopy voids all sessions if the file is a copy.
func (tx *txn) settleCopy() error {
	meta := tx.Bucket(bucketMeta)
	mark := meta.Get(keyCopied)
	if mark == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(mark))
	if err != nil {
		at = time.Unix(0, 0) // it is a copy all the same
	}
	tx.db.restored = at
	return errors.Join(tx.voidSessions(), meta.Delete(keyCopied))
}

// voidSessions has no agent be joined.
func (tx *txn) voidSessions() error {
	var all []*tilthv1.Agent
	agents := tx.table(bucketAgents)
	err := agents.each(func(name, value []byte, err error) error {
		a := &tilthv1.Agent{}
		if err == nil {
			err = agents.parse(name, value, a)
		}
		if !tx.passOver(err) {
			all = append(all, a)
		}
		return nil
	})
	for _, a := range all {
		err = errors.Join(err, agents.put([]byte(a.GetSpec().GetName()), records.Encode(gone(a))))
	}
	return err
}

// gone has an agent not be joined.
func gone(a *tilthv1.Agent) *tilthv1.Agent {
	a.State = tilthv1.AgentState_AGENT_STATE_GONE
	return a
}
