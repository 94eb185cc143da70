package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Generation implements records.Store. The name is a few random letters and digits, so names of objects created in a
// generation lost with a restored backup are never reused. It is empty if the file is open read-only.
func (db *DB) Generation() string { return db.generation }

// Restored implements records.File.
func (db *DB) Restored() time.Time { return db.restored }

// MarkCopy marks a file as a copy. When it is next opened for writing, all agents' sessions become void, so that no
// lease of the lost generation is honoured.
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

// beginGeneration upgrades the file to this version and starts a generation.
func (db *DB) beginGeneration(bolt *bbolt.Tx) error {
	tx := &txn{Tx: bolt, db: db}
	meta := tx.table(bucketMeta)
	// Anything written from now on did not come from the conversion.
	return errors.Join(tx.addBuckets(), putVersion(bolt), meta.put(keyGeneration, []byte(db.generation)), meta.remove(keyConversion), tx.settleCopy())
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
		at = time.Unix(0, 0) // still a copy
	}
	tx.db.restored = at
	return errors.Join(tx.voidSessions(), meta.Delete(keyCopied))
}

// voidSessions marks all agents as gone.
func (tx *txn) voidSessions() error {
	var all []*tilthv1.Agent
	agents := tx.table(bucketAgents)
	err := agents.each(func(name, value []byte, err error) error {
		a := &tilthv1.Agent{}
		if err == nil {
			err = agents.parse(name, value, a)
		}
		if !tx.skipDamage(err) {
			all = append(all, a)
		}
		return nil
	})
	for _, a := range all {
		err = errors.Join(err, agents.put([]byte(a.GetSpec().GetName()), records.Encode(gone(a))))
	}
	return err
}

// gone marks an agent as gone.
func gone(a *tilthv1.Agent) *tilthv1.Agent {
	a.State = tilthv1.AgentState_AGENT_STATE_GONE
	return a
}
