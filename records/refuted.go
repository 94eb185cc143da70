package records

import (
	"bytes"

	"go.etcd.io/bbolt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// refuted takes a candidate that was measured again and was wrong or crashed out of the best of its group. Only then all records of
// the group are read.
func refuted(tx *bbolt.Tx, group []byte, candidate string) error {
	for level := range levels {
		_, r, err := bestAllowed(tx, group, level)
		if err != nil {
			return err
		}
		if r.GetMeasurement().GetCandidate().GetDigest() == candidate {
			return chooseAgain(tx, group)
		}
	}
	return nil
}

// chooseAgain finds the best of a group among all its records but those of candidates that were refuted.
func chooseAgain(tx *bbolt.Tx, group []byte) error {
	refuted := map[string]bool{}
	err := eachRecord(tx, group, func(_ []byte, m *tilthv1.Measurement) error {
		if Refutes(m) {
			refuted[m.GetCandidate().GetDigest()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for level := range levels {
		if err := tx.Bucket(bucketBest).Delete(bestKey(group, level)); err != nil {
			return err
		}
	}
	return eachRecord(tx, group, func(key []byte, m *tilthv1.Measurement) error {
		if m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE || refuted[m.GetCandidate().GetDigest()] {
			return nil
		}
		return putBest(tx, group, key, m)
	})
}

// eachRecord visits a group's records, oldest first.
func eachRecord(tx *bbolt.Tx, group []byte, visit func(key []byte, m *tilthv1.Measurement) error) error {
	c := tx.Bucket(bucketRecords).Cursor()
	for k, v := c.Seek(group); bytes.HasPrefix(k, group); k, v = c.Next() {
		r := &tilthv1.Record{}
		if err := decode(v, r); err != nil {
			return err
		}
		if err := visit(bytes.Clone(k), r.GetMeasurement()); err != nil {
			return err
		}
	}
	return nil
}
