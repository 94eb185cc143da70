package records

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// refuted takes a candidate that was measured again and was wrong or crashed out of the best of its group. Only then
// all records of the group are read.
func (st *standing) refuted(tx *txn, candidate string) error {
	for _, best := range st.best {
		if best.key != nil && best.measurement.GetCandidate().GetDigest() == candidate {
			return st.chooseAgain(tx)
		}
	}
	return nil
}

// chooseAgain finds the best of a group among all its records but those of candidates that were refuted, and stores
// it.
func (st *standing) chooseAgain(tx *txn) error {
	if err := st.choose(tx); err != nil {
		return err
	}
	return st.write(tx)
}

// choose is chooseAgain but for the store.
func (st *standing) choose(tx *txn) error {
	refuted := map[string]bool{}
	err := eachRecord(tx, st.number, func(_ []byte, m *tilthv1.Measurement) error {
		if Refutes(m) {
			refuted[m.GetCandidate().GetDigest()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	st.best = [levelCount]held{}
	return eachRecord(tx, st.number, func(key []byte, m *tilthv1.Measurement) error {
		if m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE && !refuted[m.GetCandidate().GetDigest()] {
			st.offer(key, m)
		}
		return nil
	})
}

// eachRecord visits a group's records, oldest first.
func eachRecord(tx *txn, group []byte, visit func(key []byte, m *tilthv1.Measurement) error) error {
	rows := tx.table(bucketRecords)
	c := rows.cursor()
	for k, v := c.Seek(group); bytes.HasPrefix(k, group); k, v = c.Next() {
		r := &tilthv1.Record{}
		if err := rows.read(k, v, r); err != nil {
			if tx.passOver(err) {
				continue
			}
			return err
		}
		if err := visit(bytes.Clone(k), r.GetMeasurement()); err != nil {
			return err
		}
	}
	return nil
}
