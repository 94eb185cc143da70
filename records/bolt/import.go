package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// importWrites bounds the pending writes of an import.
const importWrites = 4

// Import implements records.Measurements. Chunks are stored in the file until all records have arrived and are valid.
// Marking the import as complete is its commit point: it is then carried out even if ctx ends or, after a crash, when
// the file is next opened. Concurrent readers may see some of the records. Memory use does not depend on their number.
func (db *DB) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	db.mu.Lock()
	db.imports++
	i := &importing{db: db, number: db.imports}
	db.mu.Unlock()
	if err := records.Collect(ctx, next, i.setAside); err != nil {
		_ = i.drop() // otherwise done when the file is next opened
		return 0, 0, err
	}
	whole := func(tx *txn) error { return tx.put(bucketImports, i.key(), nil) }
	if err := errors.Join(i.commit(whole), i.await()); err != nil {
		return 0, 0, fmt.Errorf("import into records file %s: %w", db.path, err)
	}
	if err := i.finish(); err != nil {
		return 0, 0, fmt.Errorf("import into records file %s, to be completed when it is next opened: %w", db.path, err)
	}
	return i.imported, i.skipped, nil
}

// importing is an import in progress. The file holds its chunks, and a mark once all are present.
type importing struct {
	db     *DB
	number uint64
	chunks uint64             // stored so far
	under  []*records.Pending // pending writes
	// imported and skipped are owned by the writer while writes are pending.
	imported, skipped uint64
}

// key returns the key of the import's mark, the prefix of its chunks' keys.
func (i *importing) key() []byte { return binary.BigEndian.AppendUint64(nil, i.number) }

// setAside stores a chunk.
func (i *importing) setAside(chunk []byte) error {
	key := binary.BigEndian.AppendUint64(i.key(), i.chunks)
	i.chunks++
	return i.commit(func(tx *txn) error { return tx.put(bucketImports, key, chunk) })
}

// commit submits operations. It waits once importWrites are pending.
func (i *importing) commit(ops ...func(*txn) error) error {
	if i.under = append(i.under, i.db.maintain(ops...)); len(i.under) < importWrites {
		return nil
	}
	return i.await()
}

// await waits for the pending writes.
func (i *importing) await() error {
	for _, p := range i.under {
		if err := p.Wait(context.Background()); err != nil {
			return err
		}
	}
	i.under = nil
	return nil
}

// finish replaces all chunks by their records and removes the mark.
func (i *importing) finish() error {
	return i.clear(i.addChunk)
}

// drop removes all chunks.
func (i *importing) drop() error {
	return i.clear(func([]byte) ([]func(*txn) error, error) { return nil, nil })
}

// clear removes all chunks, each in one write together with the operations that add returns for it, and finally the
// mark.
func (i *importing) clear(add func(chunk []byte) ([]func(*txn) error, error)) error {
	if err := i.await(); err != nil {
		return err
	}
	for key := i.key(); ; {
		var chunk []byte
		err := i.db.view(func(tx *txn) error {
			rows := tx.table(bucketImports)
			c := rows.cursor()
			k, v := c.Seek(key)
			if bytes.Equal(k, key) {
				k, v = c.Next()
			}
			if !bytes.HasPrefix(k, i.key()) {
				key = nil
				return nil
			}
			value, err := rows.open(k, v)
			tx.skipDamage(err)
			key, chunk = bytes.Clone(k), bytes.Clone(value)
			return nil
		})
		if err != nil {
			return err
		}
		if key == nil {
			break
		}
		ops, err := add(chunk)
		if err != nil {
			return err
		}
		if err := i.commit(append(ops, removeImport(key))...); err != nil {
			return err
		}
	}
	return errors.Join(i.commit(removeImport(i.key())), i.await())
}

func removeImport(key []byte) func(*txn) error {
	return func(tx *txn) error { return tx.table(bucketImports).remove(key) }
}

// addChunk returns the operations that add the records of a chunk.
func (i *importing) addChunk(chunk []byte) (ops []func(*txn) error, err error) {
	adds, err := records.DecodeChunk(chunk)
	for _, add := range adds {
		ops = append(ops, i.addRecord(add))
	}
	return ops, err
}

func (i *importing) addRecord(add records.AddRecord) func(*txn) error {
	return func(tx *txn) error {
		added, err := tx.addRecord(add)
		if added {
			i.imported++
		} else {
			i.skipped++
		}
		return err
	}
}

// settleImports settles imports left by a previous process: complete ones are finished, others dropped.
func (db *DB) settleImports() error {
	whole, parts, err := db.importsLeft()
	for _, i := range whole {
		err = errors.Join(err, i.finish())
	}
	for _, i := range parts {
		err = errors.Join(err, i.drop())
	}
	return err
}

// importsLeft returns the complete and the incomplete imports in the file.
func (db *DB) importsLeft() (whole, parts []*importing, err error) {
	err = db.view(func(tx *txn) error {
		left := tx.table(bucketImports)
		c := left.cursor()
		for k, v := c.First(); k != nil; {
			if _, err := left.open(k, v); tx.skipDamage(err) {
				k, v = c.Next()
				continue
			}
			i := &importing{db: db, number: binary.BigEndian.Uint64(k)}
			if len(k) == len(i.key()) {
				whole = append(whole, i)
			} else {
				parts = append(parts, i)
			}
			k, v = c.Seek(binary.BigEndian.AppendUint64(nil, i.number+1))
		}
		return nil
	})
	return whole, parts, err
}
