package bolt

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// bestKey is the key in the bucket of best records of the fastest one that a level allows: the group's number, and,
// but for the last level, which allows all, the level.
func bestKey(group []byte, level int) []byte {
	if level == records.Levels-1 {
		return group
	}
	return append(bytes.Clone(group), byte(level))
}

// bestAllowed is the key of the fastest verified record that a level allows, with the record; nil when there is none.
// Every group has a row for each level: where it is damaged or missing, or its record is, the group's records say what
// it was.
func bestAllowed(tx *txn, number []byte, level int) (key []byte, r *tilthv1.Record, err error) {
	if !tx.db.sealed {
		return bestBeforeSeals(tx, number, level)
	}
	key, r, err = storedBest(tx, bestKey(number, level))
	if !tx.passOver(err) {
		return key, r, err
	}
	// What the records say does not depend on the row that is damaged, nor on the record.
	tx.db.chooseLater(number)
	g := &group{number: number}
	if err := g.choose(tx); err != nil || g.bests[level].Measurement == nil {
		return nil, nil, err
	}
	r = &tilthv1.Record{}
	key = recordKey(number, g.bests[level].Key)
	return key, r, tx.table(bucketRecords).load(key, r)
}

// storedBest is the record to which a row among the best leads; nil when the row says that there is none.
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

// bestBeforeSeals is bestAllowed in files from before there were checksums. A group has no row for a level while the
// fastest record of all is allowed by it, as in files from before there were levels.
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

// BestAllowed is Best among the records that a level of numerics allows; an empty level allows all.
func (db *DB) BestAllowed(target, workloadDigest, numerics string) (record *tilthv1.Record, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	err = db.view(func(tx *txn) error {
		record, err = bestOf(tx, groupKey(target, workloadDigest), level)
		return err
	})
	return record, err
}
