package bolt

import (
	"bytes"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Events implements records.Jobs.
func (db *DB) Events(jobID string, from uint64, limit int) (events []*tilthv1.JobEvent, err error) {
	p := records.EventPage{From: from, Limit: limit}
	prefix := append([]byte(jobID), 0)
	err = db.view(func(tx *txn) error {
		rows := tx.table(bucketEvents)
		c := rows.cursor()
		for k, v := c.Seek(eventKey(jobID, from)); bytes.HasPrefix(k, prefix) && !p.Full(); k, v = c.Next() {
			var row storev1.EventRow
			if err := rows.read(k, v, &row); err != nil {
				return err
			}
			if err := p.Add(&row, func(key []byte) (*tilthv1.Measurement, error) { return readMeasurement(tx, key) }); err != nil {
				return err
			}
		}
		return nil
	})
	return p.Events, err
}

// readMeasurement fetches a trial's measurement; nil if its record was pruned or is damaged.
func readMeasurement(tx *txn, key []byte) (*tilthv1.Measurement, error) {
	rows := tx.table(bucketRecords)
	value, err := rows.get(key)
	if value == nil || err != nil {
		return nil, tx.unlessDamage(err)
	}
	var record tilthv1.Record
	if err := rows.parse(key, value, &record); err != nil {
		return nil, tx.unlessDamage(err)
	}
	return record.GetMeasurement(), nil
}
