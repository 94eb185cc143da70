package bolt

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// eventBytes ends a look-up of events with the one that makes them so large.
const eventBytes = 8 << 20

// Events returns some events of a job, from a sequence number on, in order: at most limit, and fewer where they are
// large. There are none only where none follow.
func (db *DB) Events(jobID string, from uint64, limit int) (events []*tilthv1.JobEvent, err error) {
	prefix := append([]byte(jobID), 0)
	err = db.view(func(tx *txn) error {
		rows := tx.table(bucketEvents)
		c := rows.cursor()
		size := 0
		for k, v := c.Seek(eventKey(jobID, from)); bytes.HasPrefix(k, prefix) && len(events) < limit && size < eventBytes; k, v = c.Next() {
			var row storev1.EventRow
			if err := rows.read(k, v, &row); err != nil {
				return err
			}
			several, err := unfoldEvents(tx, &row)
			if err != nil {
				return err
			}
			for _, e := range several {
				if e.GetSequence() >= from && len(events) < limit && size < eventBytes {
					records.CutEvent(e)
					size += proto.Size(e)
					events = append(events, e)
				}
			}
		}
		return nil
	})
	return events, err
}

// unfoldEvents makes events of a row, and fetches the measurements of trials from the records, which may have been
// pruned since.
func unfoldEvents(tx *txn, row *storev1.EventRow) ([]*tilthv1.JobEvent, error) {
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

// readMeasurement fetches a trial's measurement unless its record was pruned, or is damaged.
func readMeasurement(tx *txn, key []byte, trial *tilthv1.TrialRecorded) error {
	rows := tx.table(bucketRecords)
	value, err := rows.get(key)
	if value == nil || err != nil {
		return tx.unlessPassedOver(err)
	}
	var record tilthv1.Record
	if err := rows.parse(key, value, &record); err != nil {
		return tx.unlessPassedOver(err)
	}
	trial.Measurement = record.GetMeasurement()
	return nil
}
