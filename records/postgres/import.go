package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// A chunk of an import ends at so many records, or with the first that makes it so large. It is a write of its own.
const chunkRecords, chunkBytes = 500, 1 << 20

// Import implements records.Measurements. The records are set aside, chunk by chunk, until the last has come and all
// are valid: an error before that leaves the store as it was. Then the import is marked as whole, which is what
// decides, and is brought to its end even when ctx ends, or, after a crash, when the database is opened next. Whoever
// reads meanwhile may see some of the records. However many there are, few are in memory.
func (db *DB) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	incoming, err := records.NewIncoming()
	if err != nil {
		return 0, 0, err
	}
	db.mu.Lock()
	db.imports++
	i := &importing{db: db, incoming: incoming, number: db.imports}
	db.mu.Unlock()
	if err := i.collect(ctx, next); err != nil {
		_ = i.drop() // or else when the database is opened next
		return 0, 0, err
	}
	if err := i.mark(true); err != nil {
		return 0, 0, fmt.Errorf("import into %s: %w", db.name, err)
	}
	if err := i.finish(); err != nil {
		return 0, 0, fmt.Errorf("import into %s, which goes on when it is opened next: %w", db.name, err)
	}
	return i.imported, i.skipped, nil
}

// importing is an import under way: in the database it is its chunks, and a mark that says whether they are all.
type importing struct {
	db                *DB
	incoming          *records.Incoming
	number            int64
	chunks            int64 // set aside so far
	imported, skipped uint64
}

func (i *importing) commit(own func(*txn) error) error {
	return i.db.maintain(own).Wait(context.Background())
}

func (i *importing) mark(whole bool) error {
	return i.commit(func(t *txn) error {
		t.do("INSERT INTO imports (number, whole) VALUES ($1, $2) ON CONFLICT (number) DO UPDATE SET whole = excluded.whole", i.number, whole)
		return nil
	})
}

// collect sets all records aside.
func (i *importing) collect(ctx context.Context, next func() (*tilthv1.Record, error)) error {
	if err := i.mark(false); err != nil {
		return err
	}
	var chunk bytes.Buffer
	for n := 1; ; n++ {
		record, err := next()
		if errors.Is(err, io.EOF) {
			return errors.Join(i.setAside(chunk.Bytes()), context.Cause(ctx))
		}
		if err == nil {
			err = i.incoming.Admit(record)
		}
		if err != nil {
			return err
		}
		if _, err := protodelim.MarshalTo(&chunk, record); err != nil {
			return fmt.Errorf("keep records to import: %w", err)
		}
		if n%chunkRecords == 0 || chunk.Len() >= chunkBytes {
			if err := errors.Join(i.setAside(chunk.Bytes()), context.Cause(ctx)); err != nil {
				return err
			}
			chunk.Reset()
		}
	}
}

// setAside keeps a chunk.
func (i *importing) setAside(chunk []byte) error {
	if len(chunk) == 0 {
		return nil
	}
	i.chunks++
	return i.commit(func(t *txn) error {
		t.do("INSERT INTO import_chunks (import, number, records) VALUES ($1, $2, $3)", i.number, i.chunks, chunk)
		return nil
	})
}

// finish adds the records of all chunks, in whose place they come, and takes the mark away.
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

// addChunk adds the records of a chunk, and removes that.
func (i *importing) addChunk(number int64, chunk []byte) error {
	ops, err := decodeChunk(chunk)
	if err != nil {
		return err
	}
	var imported, skipped uint64
	err = i.commit(func(t *txn) (err error) {
		imported, skipped, err = t.addAll(ops)
		t.do("DELETE FROM import_chunks WHERE import = $1 AND number = $2", i.number, number)
		return err
	})
	i.imported, i.skipped = i.imported+imported, i.skipped+skipped
	return err
}

func decodeChunk(chunk []byte) (ops []records.Op, err error) {
	for in := bytes.NewReader(chunk); ; {
		record := &tilthv1.Record{}
		err := protodelim.UnmarshalOptions{MaxSize: records.MaxRowBytes}.UnmarshalFrom(in, record)
		if errors.Is(err, io.EOF) {
			return ops, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: a record to be imported: %v", records.ErrDamaged, err)
		}
		ops = append(ops, records.NewAddRecord(record))
	}
}

// addAll adds records, and counts those that were not there and those that were.
func (t *txn) addAll(ops []records.Op) (imported, skipped uint64, err error) {
	if err := t.look(ops); err != nil {
		return 0, 0, err
	}
	for _, op := range ops {
		isNew, err := t.addRecord(op.(records.AddRecord))
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

// settleImports brings the imports that a process left to their end: those that are whole are finished, the others
// dropped.
func (db *DB) settleImports() error {
	var left []*importing
	var number int64
	var whole bool
	wholes := map[int64]bool{}
	err := db.all(func(v *view) error {
		return v.query("SELECT number, whole FROM imports ORDER BY number", nil, []any{&number, &whole}, func() error {
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
