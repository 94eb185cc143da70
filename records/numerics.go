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
var levels = []string{"strict", "default", "fast"}

// numericsLevel is a level's number; ok is false when there is none of that name.
func numericsLevel(name string) (level int, ok bool) {
	if name == "" {
		return 0, true
	}
	level = slices.Index(levels, name)
	return level, level >= 0
}

// bestKey is the key in the bucket of best records of the fastest one that a level allows: the group's number, and, but for the
// last level, which allows all, the level.
func bestKey(group []byte, level int) []byte {
	if level == len(levels)-1 {
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

// putBest makes a record the best of its group for every level that allows it and whose best so far it supersedes; of equals the
// earlier stays.
func putBest(tx *bbolt.Tx, group, key []byte, m *tilthv1.Measurement) error {
	needs, ok := numericsLevel(m.GetCandidate().GetNumerics())
	if !ok {
		return nil
	}
	best := tx.Bucket(bucketBest)
	for level := range levels {
		held, r, err := bestAllowed(tx, group, level)
		if err != nil {
			return err
		}
		entry := key
		if level < needs || held != nil && !Supersedes(m, r.GetMeasurement()) {
			entry = bytes.Clone(held) // written all the same: what all levels shared may be replaced for the last one
		}
		if entry == nil {
			continue
		}
		if err := best.Put(bestKey(group, level), entry); err != nil {
			return err
		}
	}
	return nil
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
		return len(levels) - 1, nil
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
