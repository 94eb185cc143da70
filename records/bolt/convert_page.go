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
		if bucket.bucket == nil || err != nil {
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
