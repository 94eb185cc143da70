package postgres

import (
	"math"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// eventPage selects rows of a job's events: at most $3, stopping after $4 bytes.
const eventPage = `SELECT sequence, message FROM (
	SELECT *, sum(octet_length(message)) OVER (ORDER BY sequence) - octet_length(message) AS before
	FROM (SELECT sequence, message FROM events WHERE job = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3) AS page
) AS summed WHERE before < $4 ORDER BY sequence`

// eventRowsPerPage bounds the rows read at once.
const eventRowsPerPage = 64

// Events implements records.Jobs.
func (db *DB) Events(jobID string, from uint64, limit int) (events []*tilthv1.JobEvent, err error) {
	if from > math.MaxInt64 {
		return nil, nil
	}
	p := records.EventPage{From: from, Limit: limit}
	err = db.all(func(v *view) error {
		for begin, more := int64(from), true; more && !p.Full(); {
			var rows []*storev1.EventRow
			rows, begin, err = eventRows(v, jobID, begin, p.Left())
			if err != nil {
				return err
			}
			more = len(rows) > 0
			measured, err := measurementsOf(v, rows)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if err := p.Add(row, func(key []byte) (*tilthv1.Measurement, error) { return measured[string(key)], nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return p.Events, err
}

// eventRows returns some rows from a sequence on, and the sequence at which the next page starts.
func eventRows(v *view, jobID string, from int64, maxBytes int) (rows []*storev1.EventRow, next int64, err error) {
	next = from
	var sequence int64
	var message []byte
	err = v.query(eventPage, []any{[]byte(jobID), from, eventRowsPerPage, maxBytes}, []any{&sequence, &message}, func() error {
		row := &storev1.EventRow{}
		rows, next = append(rows, row), sequence+1
		return decode(message, row)
	})
	return rows, next, err
}

// measurementsOf reads the measurements of trials in one query, keyed by record key. Pruned records are missing.
func measurementsOf(v *view, rows []*storev1.EventRow) (map[string]*tilthv1.Measurement, error) {
	var groups []int32
	var keys [][]byte
	want := func(name []byte) {
		if at, ok := placeOf(name); ok {
			groups, keys = append(groups, at.group), append(keys, at.key[:])
		}
	}
	for _, row := range rows {
		want(row.GetRecordKey()) // set in rows with a single trial, as written by old versions
		for _, trial := range row.GetTrials() {
			want(trial.GetRecordKey())
		}
	}
	measured := map[string]*tilthv1.Measurement{}
	if len(keys) == 0 {
		return measured, nil
	}
	var group int32
	var key, message []byte
	err := v.query("SELECT r.grp, r.key, r.message FROM unnest($1::int[], $2::bytea[]) AS wanted (grp, key) JOIN records r USING (grp, key)",
		[]any{groups, keys}, []any{&group, &key, &message}, func() error {
			k, err := keyOf(key)
			if err != nil {
				return err
			}
			var r tilthv1.Record
			err = decode(message, &r)
			measured[string(place{group, k}.bytes())] = r.GetMeasurement()
			return err
		})
	return measured, err
}
