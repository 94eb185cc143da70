package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Job implements records.Jobs.
func (db *DB) Job(id string) (job *tilthv1.Job, err error) {
	err = db.look(func(v *view) error {
		open, err := loadJob(v, id)
		if err == nil {
			job = open.Job()
		}
		return err
	})
	return job, err
}

// JobRow implements records.Jobs.
func (db *DB) JobRow(id string) (*storev1.JobRow, error) {
	row := &storev1.JobRow{}
	return row, db.look(func(v *view) error { return lookUp(v, "jobs", id, row) })
}

// lookUp decodes the message with an id, or returns ErrNotFound.
func lookUp(v *view, table, id string, into proto.Message) error {
	var message []byte
	there, err := one(v, "SELECT message FROM "+table+" WHERE id = $1", []any{[]byte(id)}, []any{&message})
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%s %q: %w", table, id, records.ErrNotFound)
	}
	return decode(message, into)
}

// jobRows selects jobs j with all their stored data.
const jobRows = `SELECT j.id, j.message, s.message, ARRAY(SELECT task FROM progress WHERE job = j.id ORDER BY task),
	ARRAY(SELECT message FROM progress WHERE job = j.id ORDER BY task), (SELECT coalesce(max(sequence), 0) FROM events WHERE job = j.id)
	FROM jobs j LEFT JOIN specs s ON s.id = j.id `

// jobRow is a row of jobRows.
type jobRow struct {
	id, job, spec []byte // spec is nil if missing
	tasks         []int64
	progress      [][]byte // one for each of tasks
	last          int64    // sequence of the last event; 0 without events
}

// eachJob visits jobs, which may be damaged. which is the WHERE clause and order.
func eachJob(v *view, which string, args []any, visit func(*records.OpenJob)) error {
	var row jobRow
	return v.query(jobRows+which, args, []any{&row.id, &row.job, &row.spec, &row.tasks, &row.progress, &row.last}, func() error {
		job := &records.OpenJob{ID: string(row.id), Row: &storev1.JobRow{}, Spec: &tilthv1.JobSpec{}}
		job.Damage = row.decode(job)
		visit(job)
		return nil
	})
}

// decode decodes a job. On error, job has what was decoded before.
func (r *jobRow) decode(job *records.OpenJob) error {
	if err := decode(r.job, job.Row); err != nil {
		return err
	}
	if r.spec == nil {
		return fmt.Errorf("specs %q: %w", job.ID, records.ErrNotFound)
	}
	if err := decode(r.spec, job.Spec); err != nil {
		return err
	}
	records.CutJob(job.Row, job.Spec)
	tasks := len(job.Spec.GetTasks())
	for i, message := range r.progress {
		if r.tasks[i] >= int64(tasks) {
			break
		}
		p := &tilthv1.TaskProgress{}
		job.Progress = append(job.Progress, p)
		if err := decode(message, p); err != nil {
			return err
		}
	}
	if len(job.Progress) < tasks {
		return fmt.Errorf("%w: the progress of a task of job %q is missing", records.ErrDamaged, job.ID)
	}
	job.LastSequence = uint64(r.last)
	return nil
}

// loadJob loads a job, or returns ErrNotFound.
func loadJob(v *view, id string) (*records.OpenJob, error) {
	var job *records.OpenJob
	err := eachJob(v, "WHERE j.id = $1", []any{[]byte(id)}, func(j *records.OpenJob) { job = j })
	switch {
	case err != nil:
		return nil, err
	case job == nil:
		return nil, fmt.Errorf("jobs %q: %w", id, records.ErrNotFound)
	}
	return job, job.Damage
}

// JobOwner implements records.Jobs.
func (db *DB) JobOwner(id string) (owner records.Owner, err error) {
	err = db.look(func(v *view) error {
		owner, err = jobOwner(v, id)
		return err
	})
	return owner, err
}

func jobOwner(v *view, id string) (records.Owner, error) {
	var spec []byte
	there, err := one(v, "SELECT message FROM specs WHERE id = $1", []any{[]byte(id)}, []any{&spec})
	if err == nil && !there {
		err = fmt.Errorf("job %q: %w", id, records.ErrNotFound)
	}
	return records.OwnerOf(spec), err
}

// JobByRequest implements records.Jobs.
func (db *DB) JobByRequest(owner, requestID string) (id string, err error) {
	err = db.look(func(v *view) error {
		var job []byte
		there, err := one(v, "SELECT job FROM requests WHERE sha256(key) = sha256($1)", []any{records.RequestKey(owner, requestID)}, []any{&job})
		if err == nil && !there {
			err = fmt.Errorf("request %q of %q: %w", requestID, owner, records.ErrNotFound)
		}
		id = string(job)
		return err
	})
	return id, err
}

// openPerView bounds the open jobs or batches read at once, since there may be thousands and a view is limited to a
// minute. Views see different instants, but only the shard's process changes these rows.
const openPerView = 256

// OpenJobs implements records.Jobs.
func (db *DB) OpenJobs() (jobs []*records.OpenJob, err error) {
	for after, more := "", true; more; {
		first := len(jobs)
		err := db.all(func(v *view) error {
			return eachJob(v, "WHERE j.open AND j.shard = $1 AND j.id > $2 ORDER BY j.id LIMIT $3", []any{db.shard, []byte(after), openPerView},
				func(job *records.OpenJob) { jobs, after = append(jobs, job), job.ID })
		})
		if err != nil {
			return nil, err
		}
		more = len(jobs)-first == openPerView
	}
	return jobs, nil
}

// LastJobID implements records.Jobs.
func (db *DB) LastJobID() (id string, err error) {
	err = db.look(func(v *view) error {
		var last []byte
		_, err := one(v, "SELECT greatest(last_job, coalesce((SELECT id FROM jobs ORDER BY id DESC LIMIT 1), '')) FROM tracker WHERE shard = $1", []any{db.shard}, []any{&last})
		id = string(last)
		return err
	})
	return id, err
}

// jobsPerLook and bytesPerLook bound the rows examined at once for a page of jobs.
const (
	jobsPerLook  = 128
	bytesPerLook = 4 << 20
)

// Jobs implements records.Jobs.
func (db *DB) Jobs(q records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	p := &records.JobPage{JobQuery: q}
	err = db.all(func(v *view) error {
		for before := q.Before; ; {
			rows, err := olderThan(v, q, before)
			if err != nil {
				return err
			}
			for _, r := range rows {
				full, err := p.Take(r.id, func() (*tilthv1.Job, error) { return r.load(v, q) })
				if full || err != nil {
					return err
				}
			}
			if len(rows) == 0 {
				p.Next = ""
				return nil
			}
			before = rows[len(rows)-1].id
		}
	})
	return p.Jobs, p.Next, err
}

// lookedAt is the row of a job that the query may select.
type lookedAt struct {
	id  string
	row storev1.JobRow
	// err is the error of decoding the row.
	err error
}

// olderJobs selects jobs before id $2 (all if $1), only open ones if $3: at most $4, stopping after $5 bytes.
const olderJobs = `SELECT id, message FROM (
	SELECT *, sum(octet_length(message)) OVER (ORDER BY id DESC) - octet_length(message) AS before
	FROM (SELECT id, message FROM jobs WHERE ($1 OR id < $2) AND (open OR NOT $3) ORDER BY id DESC LIMIT $4) AS page
) AS summed WHERE before < $5 ORDER BY id DESC`

// olderThan returns some jobs before one ("" starts at the newest), newest first.
func olderThan(v *view, q records.JobQuery, before string) (rows []*lookedAt, err error) {
	var id, message []byte
	args := []any{before == "", []byte(before), q.OnlyOpen(), jobsPerLook, bytesPerLook}
	err = v.query(olderJobs, args, []any{&id, &message}, func() error {
		r := &lookedAt{id: string(id)}
		r.err = decode(message, &r.row)
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// load returns a job if the query selects it, else nil. An unreadable job is returned as failed.
func (r *lookedAt) load(v *view, q records.JobQuery) (*tilthv1.Job, error) {
	selected, err := q.Selects(&r.row, r.err, func() (records.Owner, error) { return jobOwner(v, r.id) })
	if err != nil || !selected {
		return nil, err
	}
	stored, err := &records.OpenJob{}, r.err
	if err == nil {
		stored, err = loadJob(v, r.id)
	}
	if records.IsDamage(err) {
		return records.Unreadable(r.id, "its rows in the database are damaged"), nil
	}
	if err != nil {
		return nil, err
	}
	return stored.Listed(), nil
}

// removedAtOnce bounds the rows removed by one transaction, since it delays others.
const removedAtOnce = 1000

// Sweep implements records.Jobs.
func (db *DB) Sweep(ctx context.Context) error {
	for {
		var id []byte
		var there bool
		err := db.view(ctx, func(v *view) (err error) {
			there, err = one(v, "SELECT id FROM dropped WHERE shard = $1 ORDER BY id LIMIT 1", []any{db.shard}, []any{&id})
			return err
		})
		if err != nil || !there {
			return err
		}
		if err := db.maintain(func(t *txn) error { return t.sweep(id) }).Wait(ctx); err != nil {
			return err
		}
	}
}

// sweep removes some leftover rows of a job, and its mark once none remain.
func (t *txn) sweep(id []byte) error {
	// '/' is the character after '.'.
	batches := []any{append(slices.Clone(id), '.'), append(slices.Clone(id), '/'), removedAtOnce}
	for _, of := range []struct {
		table, where string
		args         []any
	}{
		{"progress", "job = $1 LIMIT $2", []any{id, removedAtOnce}},
		{"events", "job = $1 LIMIT $2", []any{id, removedAtOnce}},
		{"batches", "id >= $1 AND id < $2 LIMIT $3", batches},
		{"closed_batches", "id >= $1 AND id < $2 LIMIT $3", batches},
	} {
		var removed int
		_, err := one(t, fmt.Sprintf("WITH gone AS (DELETE FROM %[1]s WHERE ctid = ANY(ARRAY(SELECT ctid FROM %[1]s WHERE %[2]s)) RETURNING 1) SELECT count(*) FROM gone",
			of.table, of.where), of.args, []any{&removed})
		if err != nil || removed == removedAtOnce {
			return err
		}
	}
	t.do("DELETE FROM dropped WHERE id = $1", id)
	return nil
}

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
				err := p.Add(row, func(key []byte) (*tilthv1.Measurement, error) {
					at, _ := placeOf(key)
					return measured[at], nil
				})
				if err != nil {
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

// measurementsOf reads the measurements of trials.
func measurementsOf(v *view, rows []*storev1.EventRow) (map[place]*tilthv1.Measurement, error) {
	var places []place
	for _, row := range rows {
		for _, trial := range row.GetTrials() {
			if at, ok := placeOf(trial.GetRecordKey()); ok {
				places = append(places, at)
			}
		}
	}
	return measurementsAt(v, places)
}

// measurementsAt reads the measurements of records in one query. Pruned records are missing.
func measurementsAt(from asker, places []place) (map[place]*tilthv1.Measurement, error) {
	measured := map[place]*tilthv1.Measurement{}
	if len(places) == 0 {
		return measured, nil
	}
	groups, keys := make([]int32, len(places)), make([][]byte, len(places))
	for i, at := range places {
		groups[i], keys[i] = at.group, at.key[:]
	}
	var group int32
	var key, message []byte
	err := from.query(messagesSQL, []any{groups, keys}, []any{&group, &key, &message}, func() error {
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		var r tilthv1.Record
		err = decode(message, &r)
		measured[place{group, k}] = r.GetMeasurement()
		return err
	})
	return measured, err
}
