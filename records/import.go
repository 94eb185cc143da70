package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/tilth-dev/tilth/internal/wire/bounds"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// A chunk of an import ends at so many records, or with the first that makes it so large. It is a write of its
	// own.
	chunkRecords, chunkBytes = 500, 1 << 20
	// importWrites may be under way at a time.
	importWrites = 4
)

// Import adds the records that next returns until io.EOF: all of them or none, whatever happens. They are set aside in
// the file, chunk by chunk, until the last has come and all are valid: an error of next, of a record or of ctx leaves
// the store as it was. Then the import is marked as whole, which is what decides, and is brought to its end even when
// ctx ends, or, after a crash, when the file is opened next. Whoever reads meanwhile may see some of the records.
// Those that are already there are skipped. However many there are, few are in memory.
func (db *DB) Import(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	checker, err := bounds.New()
	if err != nil {
		return 0, 0, err
	}
	db.mu.Lock()
	db.imports++
	i := &importing{db: db, bounds: checker, number: db.imports}
	db.mu.Unlock()
	if err := i.collect(ctx, next); err != nil {
		_ = i.drop() // or else when the file is opened next
		return 0, 0, err
	}
	whole := &Write{}
	whole.put(bucketImports, i.key(), nil)
	if err := errors.Join(i.commit(whole), i.await()); err != nil {
		return 0, 0, fmt.Errorf("import into records file %s: %w", db.path, err)
	}
	if err := i.finish(); err != nil {
		return 0, 0, fmt.Errorf("import into records file %s, which goes on when it is opened next: %w", db.path, err)
	}
	return i.imported, i.skipped, nil
}

// importing is an import under way. In the file it is its chunks, and its mark once all of them are there.
type importing struct {
	db     *DB
	bounds *bounds.Checker // holds records from a file against what the wire takes
	number uint64
	chunks uint64     // set aside so far
	under  []*Pending // few
	// The counts belong to the writer while writes are under way.
	imported, skipped uint64
}

// key is that of the import's mark, which begins those of its chunks.
func (i *importing) key() []byte { return binary.BigEndian.AppendUint64(nil, i.number) }

// collect sets all records aside.
func (i *importing) collect(ctx context.Context, next func() (*tilthv1.Record, error)) error {
	var chunk bytes.Buffer
	for n := 1; ; n++ {
		record, err := next()
		if errors.Is(err, io.EOF) {
			return errors.Join(i.setAside(chunk.Bytes()), context.Cause(ctx))
		}
		if err == nil {
			err = Validate(record)
		}
		if err != nil {
			return err
		}
		// The job belongs to the tracker that made it.
		record.JobId = ""
		cutMeasurement(record.GetMeasurement())
		if err := i.bounds.Message(record); err != nil {
			return fmt.Errorf("%w: %s", ErrInvalid, status.Convert(err).Message())
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

// setAside keeps a chunk in the file.
func (i *importing) setAside(chunk []byte) error {
	w := &Write{}
	w.put(bucketImports, binary.BigEndian.AppendUint64(i.key(), i.chunks), bytes.Clone(chunk))
	i.chunks++
	return i.commit(w)
}

// commit hands a write in, and waits for those under way when they are many.
func (i *importing) commit(w *Write) error {
	if i.under = append(i.under, i.db.Commit(w)); len(i.under) < importWrites {
		return nil
	}
	return i.await()
}

// await waits for the writes under way.
func (i *importing) await() error {
	for _, p := range i.under {
		if err := p.Wait(context.Background()); err != nil {
			return err
		}
	}
	i.under = nil
	return nil
}

// finish adds the records of all chunks, in whose place they come, and takes the mark away.
func (i *importing) finish() error {
	return i.clear(func(w *Write, chunk []byte) error { return w.addChunk(chunk, &i.imported, &i.skipped) })
}

// drop removes what was set aside.
func (i *importing) drop() error {
	return i.clear(func(*Write, []byte) error { return nil })
}

// clear removes all chunks, each in a write to which add may add, and in the end the mark.
func (i *importing) clear(add func(w *Write, chunk []byte) error) error {
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
			tx.passOver(err)
			key, chunk = bytes.Clone(k), bytes.Clone(value)
			return nil
		})
		if err != nil {
			return err
		}
		if key == nil {
			break
		}
		w := &Write{}
		if err := add(w, chunk); err != nil {
			return err
		}
		w.remove(bucketImports, key)
		if err := i.commit(w); err != nil {
			return err
		}
	}
	w := &Write{}
	w.remove(bucketImports, i.key())
	return errors.Join(i.commit(w), i.await())
}

// addChunk adds the records of a chunk.
func (w *Write) addChunk(chunk []byte, imported, skipped *uint64) error {
	in := bytes.NewReader(chunk)
	for {
		record := &tilthv1.Record{}
		err := protodelim.UnmarshalOptions{MaxSize: -1}.UnmarshalFrom(in, record)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: a record to be imported: %v", ErrDamaged, err)
		}
		w.addRecord(record, func(added bool) {
			if added {
				*imported++
			} else {
				*skipped++
			}
		})
	}
}

// settleImports brings the imports that a process left to their end: those that are whole are finished, the others
// dropped.
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

// importsLeft returns the imports that are in the file: those that are whole, and the others.
func (db *DB) importsLeft() (whole, parts []*importing, err error) {
	err = db.view(func(tx *txn) error {
		left := tx.table(bucketImports)
		if left.bucket == nil {
			return nil // by a version that had no such bucket
		}
		c := left.cursor()
		for k, v := c.First(); k != nil; {
			if _, err := left.open(k, v); tx.passOver(err) {
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
