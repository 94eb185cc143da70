package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Import implements records.Measurements. Chunks are stored until all records have arrived and are valid; an error
// before that leaves the records unchanged. Marking the import as complete is its commit point: it is then carried out
// even if ctx ends or, after a crash, when the database is next opened. Concurrent readers may see some of the
// records. Memory use does not depend on their number.
func (db *DB) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	db.mu.Lock()
	db.imports = (db.imports/wire.MaxShards+1)*wire.MaxShards + int64(db.shard) // the remainder identifies the shard
	i := &importing{db: db, number: db.imports}
	db.mu.Unlock()
	if err = i.mark(false); err == nil {
		err = records.Collect(ctx, next, i.setAside)
	}
	if err != nil {
		_ = i.drop() // otherwise done when the database is next opened
		return 0, 0, err
	}
	if err := i.mark(true); err != nil {
		return 0, 0, fmt.Errorf("import into %s: %w", db.name, err)
	}
	if err := i.finish(); err != nil {
		return 0, 0, fmt.Errorf("import into %s, to be completed when it is next opened: %w", db.name, err)
	}
	return i.imported, i.skipped, nil
}

// importing is an import in progress. The database holds its chunks, and a mark that records whether all are present.
type importing struct {
	db                *DB
	number            int64 // stored so far
	chunks            int64 // set aside so far
	imported, skipped uint64
}

// commit changes rows of the import. They belong to the shard, so no lock on shared records is needed.
func (i *importing) commit(own func(*txn) error) error {
	return i.db.maintain(own).Wait(context.Background())
}

func (i *importing) mark(whole bool) error {
	return i.commit(func(t *txn) error {
		t.do("INSERT INTO imports (number, whole, shard) VALUES ($1, $2, $3) ON CONFLICT (number) DO UPDATE SET whole = excluded.whole", i.number, whole, t.shard)
		return nil
	})
}

// setAside stores a chunk.
func (i *importing) setAside(chunk []byte) error {
	i.chunks++
	return i.commit(func(t *txn) error {
		t.do("INSERT INTO import_chunks (import, number, records) VALUES ($1, $2, $3)", i.number, i.chunks, chunk)
		return nil
	})
}

// finish replaces all chunks by their records and removes the mark.
func (i *importing) finish() error {
	for {
		var number int64
		var chunk []byte
		var there bool
		err := i.db.all(func(v *view) (err error) {
			there, err = one(v, "SELECT number, records FROM import_chunks WHERE import = $1 ORDER BY number LIMIT 1",
				[]any{i.number}, []any{&number, &chunk})
			return err
		})
		if err != nil {
			return err
		}
		if !there {
			return i.drop()
		}
		if err := i.addChunk(number, chunk); err != nil {
			return err
		}
	}
}

// drop removes what is left of the import.
func (i *importing) drop() error {
	return i.commit(func(t *txn) error {
		t.do("DELETE FROM import_chunks WHERE import = $1", i.number)
		t.do("DELETE FROM imports WHERE number = $1", i.number)
		return nil
	})
}

// addChunk adds the records of a chunk and removes the chunk.
func (i *importing) addChunk(number int64, chunk []byte) error {
	adds, err := records.DecodeChunk(chunk)
	if err != nil {
		return err
	}
	var imported, skipped uint64
	err = i.db.maintainRecords(func(t *txn) (err error) {
		imported, skipped, err = t.addAll(adds)
		t.do("DELETE FROM import_chunks WHERE import = $1 AND number = $2", i.number, number)
		return err
	}).Wait(context.Background())
	i.imported, i.skipped = i.imported+imported, i.skipped+skipped
	return err
}

// addAll adds records and counts new and existing ones.
func (t *txn) addAll(adds []records.AddRecord) (imported, skipped uint64, err error) {
	ops := make([]records.Op, len(adds))
	for i, add := range adds {
		ops[i] = add
	}
	if err := t.findExisting(ops); err != nil {
		return 0, 0, err
	}
	for _, add := range adds {
		isNew, err := t.addRecord(add)
		if err != nil {
			return 0, 0, err
		}
		if isNew {
			imported++
		} else {
			skipped++
		}
	}
	return imported, skipped, nil
}

// settleImports settles imports left by a previous process: complete ones are finished, others dropped.
func (db *DB) settleImports() error {
	var left []*importing
	var number int64
	var whole bool
	wholes := map[int64]bool{}
	err := db.all(func(v *view) error {
		return v.query("SELECT number, whole FROM imports WHERE shard = $1 ORDER BY number", []any{db.shard}, []any{&number, &whole}, func() error {
			left, wholes[number] = append(left, &importing{db: db, number: number}), whole
			return nil
		})
	})
	for _, i := range left {
		if wholes[i.number] {
			err = errors.Join(err, i.finish())
		} else {
			err = errors.Join(err, i.drop())
		}
	}
	return err
}
