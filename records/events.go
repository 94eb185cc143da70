package records

import (
	"bytes"

	"go.etcd.io/bbolt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Events returns at most limit events of a job, from a sequence number on, in order.
func (db *DB) Events(jobID string, from uint64, limit int) (events []*tilthv1.JobEvent, err error) {
	prefix := append([]byte(jobID), 0)
	err = db.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketEvents).Cursor()
		for k, v := c.Seek(eventKey(jobID, from)); bytes.HasPrefix(k, prefix) && len(events) < limit; k, v = c.Next() {
			event, err := readEvent(tx, v)
			if err != nil {
				return err
			}
			events = append(events, event)
		}
		return nil
	})
	return events, err
}

// readEvent decodes an event and fetches a trial's measurement from the records, which may have been pruned since.
func readEvent(tx *bbolt.Tx, value []byte) (*tilthv1.JobEvent, error) {
	var row storev1.EventRow
	if err := decode(value, &row); err != nil {
		return nil, err
	}
	if trial := row.GetEvent().GetTrial(); trial != nil {
		value := tx.Bucket(bucketRecords).Get(row.GetRecordKey())
		if value == nil {
			return row.GetEvent(), nil
		}
		var record tilthv1.Record
		if err := decode(value, &record); err != nil {
			return nil, err
		}
		trial.Measurement = record.GetMeasurement()
	}
	return row.GetEvent(), nil
}
