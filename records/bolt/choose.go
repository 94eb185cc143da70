package bolt

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// chooseAgain recomputes the bests of a group from its records and stores them.
func (g *group) chooseAgain(tx *txn) error {
	if err := g.choose(tx); err != nil {
		return err
	}
	return g.write(tx)
}

// choose recomputes the bests of a group without storing them.
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

// eachRecord visits a group's records, oldest first, until visit returns false.
func eachRecord(tx *txn, number []byte, visit func(records.Key, *tilthv1.Measurement) bool) error {
	rows := tx.table(bucketRecords)
	c := rows.cursor()
	for k, v := c.Seek(number); bytes.HasPrefix(k, number); k, v = c.Next() {
		r := &tilthv1.Record{}
		if err := rows.read(k, v, r); err != nil {
			if tx.skipDamage(err) {
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
