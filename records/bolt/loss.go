package bolt

import (
	"bytes"
	"context"

	"github.com/tilth-dev/tilth/records"
)

// lacking returns what db has and other lacks.
func (db *DB) lacking(ctx context.Context, other *DB) (*Loss, error) {
	lost := &Loss{}
	err := db.view(func(tx *txn) error {
		return other.view(func(there *txn) error {
			if err := lost.countJobs(tx, there); err != nil {
				return err
			}
			return eachGroup(tx, records.EveryTarget, "", func(group []byte) error {
				if err := ctx.Err(); err != nil {
					return context.Cause(ctx)
				}
				lost.countRecords(tx, there, group)
				return nil
			})
		})
	})
	return lost, err
}

func (l *Loss) countJobs(tx, there *txn) error {
	jobs := there.table(bucketJobs)
	return tx.table(bucketJobs).each(func(id, _ []byte, err error) error {
		if err != nil || jobs.has(id) {
			return nil
		}
		l.JobCount++
		if len(l.Jobs) < maxLostJobs {
			l.Jobs = append(l.Jobs, string(id))
		}
		return nil
	})
}

// countRecords counts the records of a group that are missing there. The group's number may differ.
func (l *Loss) countRecords(tx, there *txn, group []byte) {
	here, number, before := tx.groupNumber(group), there.groupNumber(group), l.Records
	if here == nil {
		return
	}
	rows := there.table(bucketRecords)
	c := tx.table(bucketRecords).cursor()
	for k, _ := c.Seek(here); bytes.HasPrefix(k, here); k, _ = c.Next() {
		if number == nil || !rows.has(recordKey(number, withinGroup(k))) {
			l.Records++
		}
	}
	if l.Records > before {
		l.Workloads++
	}
}
