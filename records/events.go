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
			several, err := readEvents(tx, v)
			if err != nil {
				return err
			}
			for _, e := range several {
				if e.GetSequence() >= from && len(events) < limit {
					events = append(events, e)
				}
			}
		}
		return nil
	})
	return events, err
}

// readEvents decodes a row and fetches the measurements of trials from the records, which may have been pruned since.
func readEvents(tx *bbolt.Tx, value []byte) ([]*tilthv1.JobEvent, error) {
	var row storev1.EventRow
	if err := decode(value, &row); err != nil {
		return nil, err
	}
	first := row.GetEvent()
	if first.GetTrial() == nil {
		return []*tilthv1.JobEvent{first}, nil
	}
	if len(row.GetTrials()) == 0 {
		return []*tilthv1.JobEvent{first}, readMeasurement(tx, row.GetRecordKey(), first.GetTrial())
	}
	events := make([]*tilthv1.JobEvent, len(row.GetTrials()))
	for i, t := range row.GetTrials() {
		trial := &tilthv1.TrialRecorded{
			TaskIndex: first.GetTrial().GetTaskIndex(), BatchId: first.GetTrial().GetBatchId(), BestSeconds: t.GetBestSeconds(),
		}
		if err := readMeasurement(tx, t.GetRecordKey(), trial); err != nil {
			return nil, err
		}
		events[i] = &tilthv1.JobEvent{Sequence: first.GetSequence() + uint64(i), At: first.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: trial}}
	}
	return events, nil
}

// readMeasurement fetches a trial's measurement unless its record was pruned.
func readMeasurement(tx *bbolt.Tx, key []byte, trial *tilthv1.TrialRecorded) error {
	value := tx.Bucket(bucketRecords).Get(key)
	if value == nil {
		return nil
	}
	var record tilthv1.Record
	if err := decode(value, &record); err != nil {
		return err
	}
	trial.Measurement = record.GetMeasurement()
	return nil
}
