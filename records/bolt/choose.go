package bolt

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// chooseAgain finds the best of a group among all its records, and stores it.
func (g *group) chooseAgain(tx *txn) error {
	if err := g.choose(tx); err != nil {
		return err
	}
	return g.write(tx)
}

// choose is chooseAgain but for the store.
func (g *group) choose(tx *txn) (err error) {
	bests := records.Choose(func(yield func(records.Key, *tilthv1.Measurement) bool) {
		if err == nil {
			err = eachRecord(tx, g.number, yield)
		}
	})
	if err == nil {
		g.bests = bests
	}
	return err
}

// eachRecord visits a group's records, oldest first, for as long as visit wants more.
func eachRecord(tx *txn, number []byte, visit func(records.Key, *tilthv1.Measurement) bool) error {
	rows := tx.table(bucketRecords)
	c := rows.cursor()
	for k, v := c.Seek(number); bytes.HasPrefix(k, number); k, v = c.Next() {
		r := &tilthv1.Record{}
		if err := rows.read(k, v, r); err != nil {
			if tx.passOver(err) {
				continue
			}
			return err
		}
		if !visit(withinGroup(k), r.GetMeasurement()) {
			return nil
		}
	}
	return nil
}
