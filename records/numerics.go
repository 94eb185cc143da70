package records

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// levels are the levels of numerics, each of which allows what those before it do. A candidate's level is the least that allows
// it; empty, as in records from before there were levels, is the first.
var levels = [levelCount]string{"strict", "default", "fast"}

const levelCount = 3

// numericsLevel is a level's number; ok is false when there is none of that name.
func numericsLevel(name string) (level int, ok bool) {
	if name == "" {
		return 0, true
	}
	level = slices.Index(levels[:], name)
	return level, level >= 0
}

// bestKey is the key in the bucket of best records of the fastest one that a level allows: the group's number, and, but for the
// last level, which allows all, the level.
func bestKey(group []byte, level int) []byte {
	if level == levelCount-1 {
		return group
	}
	return append(bytes.Clone(group), byte(level))
}

// bestAllowed is the key of the fastest verified record that a level allows, with the record; nil when there is none. A group
// has no entry for a level while the fastest record of all is allowed by it, as in files from before there were levels.
func bestAllowed(tx *bbolt.Tx, group []byte, level int) (key []byte, r *tilthv1.Record, err error) {
	best := tx.Bucket(bucketBest)
	own := best.Get(bestKey(group, level))
	if key = own; key == nil {
		key = best.Get(group)
	}
	if key == nil {
		return nil, nil, nil
	}
	r = &tilthv1.Record{}
	if err := decode(tx.Bucket(bucketRecords).Get(key), r); err != nil {
		return nil, nil, err
	}
	if needs, _ := numericsLevel(r.GetMeasurement().GetCandidate().GetNumerics()); own == nil && needs > level {
		return nil, nil, nil
	}
	return key, r, nil
}

// BestAllowed is Best among the records that a level of numerics allows; an empty level allows all.
func (db *DB) BestAllowed(target, workloadDigest, numerics string) (record *tilthv1.Record, err error) {
	level, err := allowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	err = db.view(func(tx *bbolt.Tx) error {
		record, err = bestOf(tx, groupKey(target, workloadDigest), level)
		return err
	})
	return record, err
}

// allowedLevel is the number of the level that bounds a look-up; empty means the last.
func allowedLevel(numerics string) (int, error) {
	if numerics == "" {
		return levelCount - 1, nil
	}
	level, ok := numericsLevel(numerics)
	if !ok {
		return 0, fmt.Errorf("%w: numerics %q is not one of %v", ErrInvalid, numerics, levels)
	}
	return level, nil
}

// ValidNumerics says whether there is a level of that name; empty is one.
func ValidNumerics(name string) bool {
	_, ok := numericsLevel(name)
	return ok
}
