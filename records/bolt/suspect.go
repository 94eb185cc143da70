package bolt

import (
	"bytes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// suspectBests scans the best records of all workloads; their keys contain the time of measurement.
func (tx *txn) suspectBests(op records.SuspectBests) error {
	var keys [][]byte
	err := tx.table(bucketBest).each(func(_, key []byte, err error) error {
		if !tx.skipDamage(err) && len(key) == recordKeyBytes && withinGroup(key).At().After(op.Since) {
			keys = append(keys, bytes.Clone(key)) // writing may move it
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := tx.suspect(key, op.Device, op.Reason); err != nil {
			return err
		}
	}
	return nil
}

// suspect marks a record if the device measured it.
func (tx *txn) suspect(key []byte, device, reason string) error {
	rows, r := tx.table(bucketRecords), &tilthv1.Record{}
	if err := rows.load(key, r); err != nil {
		return tx.unlessDamage(err)
	}
	if r.GetMeasurement().GetDevice() != device {
		return nil
	}
	r.Measurement.Suspected = reason
	clear(tx.groups.known) // the cache holds the old measurement
	return rows.put(key, records.Encode(r))
}
