package bolt

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// bestKey returns the key of a group's best record in bucket best: the group's number and the level. The last level,
// which allows everything, is omitted.
func bestKey(group []byte, level int) []byte {
	if level == records.Levels-1 {
		return group
	}
	return append(bytes.Clone(group), byte(level))
}

// bestAllowed returns the best verified record that a level allows with its key, or nil. Every group has a row for
// each level. If that row or its record is damaged or missing, the best is computed from the group's records.
func bestAllowed(tx *txn, number []byte, level int) (key []byte, r *tilthv1.Record, err error) {
	if !tx.db.sealed {
		return bestBeforeSeals(tx, number, level)
	}
	key, r, err = storedBest(tx, bestKey(number, level))
	if !tx.skipDamage(err) {
		return key, r, err
	}
	// The records determine the result even if the row or its record is damaged.
	stored := bytes.Clone(number)
	tx.db.later(func(tx *txn) error { return tx.choosePast(stored) })
	g := &group{number: number}
	if err := g.choose(tx); err != nil || g.bests[level].Measurement == nil {
		return nil, nil, err
	}
	r = &tilthv1.Record{}
	key = recordKey(number, g.bests[level].Key)
	return key, r, tx.table(bucketRecords).load(key, r)
}

// storedBest returns the record that a row of bucket best refers to; nil if the row is empty.
func storedBest(tx *txn, row []byte) (key []byte, r *tilthv1.Record, err error) {
	best := tx.table(bucketBest)
	key, err = best.get(row)
	if err == nil && key == nil {
		err = damagedRow(bucketBest, row, errMissingRow)
	}
	if err != nil || len(key) == 0 {
		return nil, nil, err
	}
	r = &tilthv1.Record{}
	return key, r, tx.table(bucketRecords).load(key, r)
}

// bestBeforeSeals is bestAllowed for files without checksums. Such files have no row for a level that allows the
// overall best, which includes all files from before levels existed.
func bestBeforeSeals(tx *txn, group []byte, level int) (key []byte, r *tilthv1.Record, err error) {
	best := tx.table(bucketBest)
	own := best.bucket.Get(bestKey(group, level))
	if key = own; key == nil {
		key = best.bucket.Get(group)
	}
	if key == nil {
		return nil, nil, nil
	}
	r = &tilthv1.Record{}
	if err := tx.table(bucketRecords).load(key, r); err != nil {
		return nil, nil, err
	}
	if needs, _ := records.Level(r.GetMeasurement().GetCandidate().GetNumerics()); own == nil && needs > level {
		return nil, nil, nil
	}
	return key, r, nil
}

// BestAllowed implements records.Measurements.
func (db *DB) BestAllowed(target, workloadDigest, numerics string) (record *tilthv1.Record, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	err = db.view(func(tx *txn) error {
		record, err = bestOf(tx, []byte(records.Group{Target: target, Workload: workloadDigest}.Name()), level)
		return err
	})
	return record, err
}
