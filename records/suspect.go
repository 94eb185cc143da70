package records

import (
	"bytes"
	"encoding/binary"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// SuspectBests marks the best records that a device measured after a time: they stand until their candidates are
// measured again, however shortly. The best of all workloads are looked through, whose records' keys say when they
// were made.
func (w *Write) SuspectBests(device string, since time.Time, reason string) {
	w.ops = append(w.ops, func(tx *txn) error {
		var keys [][]byte
		err := tx.table(bucketBest).each(func(_, key []byte, err error) error {
			if !tx.passOver(err) && len(key) == recordKeyBytes && madeAt(key).After(since) {
				keys = append(keys, bytes.Clone(key)) // writing may move it
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := tx.suspect(key, device, reason); err != nil {
				return err
			}
		}
		return nil
	})
}

// suspect marks a record if it is the device's.
func (tx *txn) suspect(key []byte, device, reason string) error {
	records, r := tx.table(bucketRecords), &tilthv1.Record{}
	if err := records.load(key, r); err != nil {
		return tx.unlessPassedOver(err)
	}
	if r.GetMeasurement().GetDevice() != device {
		return nil
	}
	r.Measurement.Suspected = reason
	clear(tx.standings.byGroup) // which remember it as it was
	return records.put(key, encode(r))
}

// madeAt is when the record of a key was measured.
func madeAt(key []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(key[4:])))
}
