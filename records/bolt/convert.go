package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/internal/filesystem"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Stopped is a records file held for a conversion; see records.Target.
type Stopped struct{ db *DB }

// OpenSource opens the records file at path for reading all rows, after verifying it. It locks out writers until Close
// and does not change the file. It returns ErrMissing if the file does not exist, ErrLocked if a tracker has it open,
// ErrDamaged for a damaged page or row, and ErrVersion for a file of another version.
func OpenSource(ctx context.Context, path string) (*Stopped, error) {
	s, err := openStopped(path, Options{}, true)
	if errors.Is(err, records.ErrMissing) {
		return nil, fmt.Errorf("records file %s: %w: name the tracker's folder with --data", path, records.ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	report, err := Verify(ctx, path)
	if err == nil {
		err = report.Failure(path)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenTarget opens the records file at path for copying rows into it, creating it if necessary. It locks out other
// processes until Close. Errors are as for OpenSource.
func OpenTarget(path string) (*Stopped, error) {
	err := filesystem.MakeFolder(filepath.Dir(path), 0o700)
	if err == nil {
		err = create(path)
	}
	if err == nil {
		err = syncName(path)
	}
	if err != nil {
		return nil, fmt.Errorf("create records file %s: %w", path, err)
	}
	return openStopped(path, Options{converts: true}, false)
}

func openStopped(path string, opts Options, readOnly bool) (*Stopped, error) {
	db, err := open(path, opts, readOnly)
	if errors.Is(err, records.ErrLocked) {
		return nil, fmt.Errorf("records file %s: %w: stop the tracker first", path, records.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	return &Stopped{db}, nil
}

// checkConverted refuses a file with an unfinished conversion, except for the conversion itself.
func (db *DB) checkConverted(tx *bbolt.Tx, opts Options) error {
	if opts.converts {
		return nil
	}
	mark, err := (&txn{Tx: tx, db: db}).conversion()
	if err == nil && mark != nil && !mark.GetFinished() {
		err = fmt.Errorf("%w: it has only a part of %s", records.ErrUnfinished, mark.GetSource())
	}
	return err
}

// conversion returns the file's mark, or nil.
func (tx *txn) conversion() (*storev1.Conversion, error) {
	meta := tx.table(bucketMeta)
	value, err := meta.get(keyConversion)
	if value == nil || err != nil {
		return nil, err
	}
	mark := &storev1.Conversion{}
	return mark, meta.parse(keyConversion, value, mark)
}

// view is like DB.view with errors suited to conversions.
func (s *Stopped) view(read func(tx *txn) error) error {
	err := guard(func() error {
		return s.db.bolt.View(func(tx *bbolt.Tx) error { return read(&txn{Tx: tx, db: s.db}) })
	})
	switch {
	case errors.Is(err, records.ErrDamaged):
		return fmt.Errorf("records file %s: %w: restore a backup, or drop what is damaged with 'tilth records compact'", s.db.path, err)
	case err != nil:
		return fmt.Errorf("records file %s: %w", s.db.path, err)
	}
	return nil
}

// Name implements records.Stopped.
func (s *Stopped) Name() string { return "records file " + s.db.path }

// EmptyHint implements records.Target.
func (s *Stopped) EmptyHint() string { return "move that file away" }

// Close implements records.Stopped.
func (s *Stopped) Close() error { return s.db.Close() }

// State implements records.Stopped. It combines the file's generation, which changes when it is opened for writing,
// with the number of its last transaction.
func (s *Stopped) State(context.Context) (state string, err error) {
	err = s.view(func(tx *txn) error {
		generation, err := tx.table(bucketMeta).get(keyGeneration)
		state = fmt.Sprintf("bolt %s %d", generation, tx.ID())
		return err
	})
	return state, err
}

// Conversion implements records.Target.
func (s *Stopped) Conversion(context.Context) (mark *storev1.Conversion, err error) {
	err = s.view(func(tx *txn) error {
		mark, err = tx.conversion()
		return err
	})
	return mark, err
}

// Put implements records.Target.
func (s *Stopped) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := guard(func() error {
		return s.db.bolt.Update(func(bolt *bbolt.Tx) error {
			tx := &txn{Tx: bolt, db: s.db}
			meta := tx.table(bucketMeta)
			if !meta.has(keyConversion) {
				if err := meta.put(keyGeneration, []byte(records.NewGeneration())); err != nil {
					return err
				}
			}
			for _, row := range rows {
				if err := tx.putRow(kind, row); err != nil {
					return err
				}
			}
			return meta.put(keyConversion, records.Encode(mark))
		})
	})
	if err != nil {
		return fmt.Errorf("write records file %s: %w", s.db.path, err)
	}
	var sizeBytes int
	for _, row := range rows {
		sizeBytes += len(row.Key) + len(row.Value)
	}
	s.db.touch(int64(sizeBytes))
	return nil
}

// sameRows maps kinds to buckets with identical rows.
var sameRows = map[records.RowKind][]byte{
	records.RowSpec: bucketSpecs, records.RowProgress: bucketProgress, records.RowRequest: bucketRequests,
	records.RowEvent: bucketEvents, records.RowEnded: bucketEnded, records.RowDropped: bucketDropping,
	records.RowBatch: bucketBatches, records.RowClosed: bucketClosed, records.RowAgent: bucketAgents,
	records.RowDevice: bucketDevices, records.RowWorkload: bucketWorkloads, records.RowRecord: bucketRecords,
	records.RowImport: bucketImports, records.RowChunk: bucketImports,
}

// putRow adds a row.
func (tx *txn) putRow(kind records.RowKind, row records.Row) error {
	switch kind {
	case records.RowJob:
		if len(row.Value) == 0 {
			return damagedRow(bucketJobs, row.Key, fmt.Errorf("%w: it is empty", records.ErrDamaged))
		}
		return tx.putJob(records.PutJob{ID: string(row.Key), Row: bytes.Clone(row.Value[1:]), Final: row.Value[0] == 0})
	case records.RowLastJob:
		return tx.put(bucketMeta, keyLastJob, bytes.Clone(row.Value))
	case records.RowGroup:
		return tx.putGroup(row)
	case records.RowRecord:
		if err := tx.reserve(row.Key[:groupBytes]); err != nil {
			return err
		}
	}
	bucket := sameRows[kind]
	if bucket == nil {
		return fmt.Errorf("no such rows: %s", kind)
	}
	tx.Bucket(bucket).FillPercent = 0.9 // keys only grow
	return tx.put(bucket, row.Key, bytes.Clone(row.Value))
}

// putGroup adds a group with the rows of its best records.
func (tx *txn) putGroup(row records.Row) error {
	of, err := records.DecodeGroupRow(row.Value)
	if err != nil {
		return err
	}
	number := binary.BigEndian.AppendUint32(nil, of.Number)
	if err := errors.Join(tx.reserve(number), tx.put(bucketGroups, row.Key, bytes.Clone(number))); err != nil {
		return err
	}
	for level, key := range of.Best {
		var best []byte
		if len(key) > 0 {
			best = recordKey(number, records.Key(key))
		}
		if err := tx.put(bucketBest, bestKey(number, level), best); err != nil {
			return err
		}
	}
	return nil
}

// reserve keeps new groups from using a number.
func (tx *txn) reserve(number []byte) error {
	groups := tx.Bucket(bucketGroups)
	if n := uint64(binary.BigEndian.Uint32(number)); n > groups.Sequence() {
		return groups.SetSequence(n)
	}
	return nil
}

// Page implements records.Stopped.
func (s *Stopped) Page(ctx context.Context, kind records.RowKind, after []byte) (rows []records.Row, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if kind == records.RowLastJob {
		return s.lastJob(after)
	}
	sizeBytes := 0
	err = s.view(func(tx *txn) error {
		bucket, value, err := tx.rowsOf(kind, after)
		if err != nil {
			return err
		}
		c := bucket.cursor()
		for k, stored := c.Seek(after); k != nil; k, stored = c.Next() {
			if bytes.Equal(k, after) {
				continue
			}
			v, err := bucket.open(k, stored)
			if err == nil && value != nil {
				v, err = value(k, v)
			}
			if errors.Is(err, errOtherRow) {
				continue
			}
			if err != nil {
				return err
			}
			rows = append(rows, records.Row{Key: bytes.Clone(k), Value: bytes.Clone(v)})
			if sizeBytes += len(k) + len(v); len(rows) == records.RowsPerPage || sizeBytes >= records.BytesPerPage {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.db.touch(int64(sizeBytes))
	return rows, nil
}

// lastJob returns the page of RowLastJob.
func (s *Stopped) lastJob(after []byte) (rows []records.Row, err error) {
	if after != nil {
		return nil, nil
	}
	err = s.view(func(tx *txn) error {
		id, err := tx.table(bucketMeta).get(keyLastJob)
		if id != nil {
			rows = []records.Row{{Key: keyLastJob, Value: bytes.Clone(id)}}
		}
		return err
	})
	return rows, err
}

// errOtherRow reports a row in the table that is not of the requested kind.
var errOtherRow = errors.New("it is of another kind")

// rowsOf returns the table with the rows of a kind, and a function that converts its values (nil if they are
// identical). after is nil for the first page.
func (tx *txn) rowsOf(kind records.RowKind, after []byte) (of table, value func(key, value []byte) ([]byte, error), err error) {
	switch kind {
	case records.RowJob:
		if after == nil {
			err = tx.checkOpen()
		}
		return tx.table(bucketJobs), tx.jobRow, err
	case records.RowGroup:
		return tx.table(bucketGroups), func(_, number []byte) ([]byte, error) { return tx.groupRow(number) }, nil
	case records.RowAgent:
		if tx.Bucket(bucketMeta).Get(keyCopied) != nil {
			value = tx.withoutSession
		}
	case records.RowImport:
		value = func(key, value []byte) ([]byte, error) { return value, unlessTrue(len(key) == importBytes) }
	case records.RowChunk:
		value = func(key, value []byte) ([]byte, error) {
			// Incomplete imports are dropped.
			whole := len(key) > importBytes && tx.table(bucketImports).has(key[:importBytes])
			return value, unlessTrue(whole)
		}
	}
	bucket := sameRows[kind]
	if bucket == nil {
		return of, nil, fmt.Errorf("no such rows: %s", kind)
	}
	return tx.table(bucket), value, nil
}

// importBytes is the length of an import's number.
const importBytes = 8

func unlessTrue(is bool) error {
	if is {
		return nil
	}
	return errOtherRow
}

// checkOpen returns an error if an open job has no row.
func (tx *txn) checkOpen() error {
	jobs := tx.table(bucketJobs)
	return tx.table(bucketOpen).each(func(id, _ []byte, err error) error {
		if err == nil && !jobs.has(id) {
			err = damagedRow(bucketJobs, id, errMissingRow)
		}
		return err
	})
}

// jobRow converts the row of a job.
func (tx *txn) jobRow(id, row []byte) ([]byte, error) {
	open := byte(0)
	if tx.table(bucketOpen).has(id) {
		open = 1
	}
	return append([]byte{open}, row...), nil
}

// groupRow converts the row of a group.
func (tx *txn) groupRow(number []byte) ([]byte, error) {
	if len(number) != groupBytes {
		return nil, fmt.Errorf("%w: the number of a group has %d bytes", records.ErrDamaged, len(number))
	}
	of := records.GroupRow{Number: binary.BigEndian.Uint32(number)}
	best := tx.table(bucketBest)
	for level := range of.Best {
		row := bestKey(number, level)
		key, err := best.get(row)
		if err == nil && (key == nil || len(key) != 0 && len(key) != recordKeyBytes) {
			err = damagedRow(bucketBest, row, errMissingRow)
		}
		if err != nil {
			return nil, err
		}
		if len(key) > 0 {
			of.Best[level] = key[groupBytes:]
		}
	}
	return of.Encode(), nil
}

// withoutSession returns an agent without its session, since opening a copied file voids all sessions.
func (tx *txn) withoutSession(name, row []byte) ([]byte, error) {
	a := &tilthv1.Agent{}
	if err := tx.table(bucketAgents).parse(name, row, a); err != nil {
		return nil, err
	}
	return records.Encode(gone(a)), nil
}
