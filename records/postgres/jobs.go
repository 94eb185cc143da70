package postgres

import (
	"context"
	"fmt"
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

// lookUp decodes the message of an id. ErrNotFound when there is none.
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

// jobRows asks for jobs j with all that is stored of each.
const jobRows = `SELECT j.id, j.message, s.message, ARRAY(SELECT task FROM progress WHERE job = j.id ORDER BY task),
	ARRAY(SELECT message FROM progress WHERE job = j.id ORDER BY task), (SELECT coalesce(max(sequence), 0) FROM events WHERE job = j.id)
	FROM jobs j LEFT JOIN specs s ON s.id = j.id `

// jobRow is a row of the answer.
type jobRow struct {
	id, job, spec []byte // the spec is nil where there is none
	tasks         []int64
	progress      [][]byte // of each of the tasks
	last          int64    // sequence of the last event, 0 = there is none
}

// eachJob visits jobs, of which some may be damaged. which says which, and in what order.
func eachJob(v *view, which string, args []any, visit func(*records.OpenJob)) error {
	var row jobRow
	return v.query(jobRows+which, args, []any{&row.id, &row.job, &row.spec, &row.tasks, &row.progress, &row.last}, func() error {
		job := &records.OpenJob{ID: string(row.id), Row: &storev1.JobRow{}, Spec: &tilthv1.JobSpec{}}
		job.Damage = row.decode(job)
		visit(job)
		return nil
	})
}

// decode decodes all of a job. What was read before an error is in it.
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

// loadJob reads all of a job. ErrNotFound when there is none.
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

// jobByRequest asks for a request's job. In files from before requests had owners the key was the request's alone, and
// the job tells whose it was.
const jobByRequest = `SELECT job, CASE WHEN key = $1 THEN '' ELSE coalesce(s.message, '') END, key = $1 FROM requests LEFT JOIN specs s ON s.id = job
	WHERE sha256(key) IN (sha256($1), sha256($2)) ORDER BY key <> $1`

// JobByRequest implements records.Jobs.
func (db *DB) JobByRequest(owner, requestID string) (id string, err error) {
	err = db.look(func(v *view) error {
		var job, stored, spec []byte
		var own, there bool
		keys := []any{records.RequestKey(owner, requestID), []byte(requestID)}
		err := v.query(jobByRequest, keys, []any{&stored, &spec, &own}, func() error {
			if !there && (own || len(spec) > 0 && records.OwnerOf(spec).Name == owner) {
				there, job = true, stored
			}
			return nil
		})
		if err == nil && !there {
			err = fmt.Errorf("request %q of %q: %w", requestID, owner, records.ErrNotFound)
		}
		id = string(job)
		return err
	})
	return id, err
}

// openPerView jobs or batches under way are read at once: there may be thousands, and a view has a minute. Each view
// sees another instant, which is the same to the shard's process, since nobody else changes these rows.
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

// EndedJobs implements records.Jobs.
func (db *DB) EndedJobs(visit func(id string, row *storev1.EndedRow)) error {
	return db.all(func(v *view) error {
		var id, message []byte
		return v.query("SELECT id, message FROM ended WHERE shard = $1 ORDER BY id", []any{db.shard}, []any{&id, &message}, func() error {
			row := &storev1.EndedRow{}
			err := decode(message, row)
			if err == nil {
				visit(string(id), row)
			}
			return err
		})
	})
}

// jobsPerLook are looked at together for a page of jobs, but no more after bytesPerLook of their rows.
const (
	jobsPerLook  = 128
	bytesPerLook = 4 << 20
)

// Jobs implements records.Jobs.
func (db *DB) Jobs(q records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	err = db.all(func(v *view) error {
		p := &jobPage{JobQuery: q}
		for before := q.Before; ; {
			rows, err := p.older(v, before)
			if err != nil {
				return err
			}
			full, err := p.take(v, rows)
			if full || err != nil {
				jobs, next = p.jobs, p.next
				return err
			}
			if len(rows) == 0 {
				jobs = p.jobs
				return nil
			}
			before = rows[len(rows)-1].id
		}
	})
	return jobs, next, err
}

// jobPage is a page of jobs that is being made.
type jobPage struct {
	records.JobQuery
	jobs       []*tilthv1.Job
	next       string // the last that it has, or where it ends without any
	seen, size int
}

// lookedAt is the row of a job that may be wanted.
type lookedAt struct {
	id  string
	row storev1.JobRow
	// err is what is wrong with the row; nil = nothing.
	err error
}

// olderJobs asks for the jobs before the id $2 (if not $1), of which only open ones where $3: $4 of them at most, and
// no more after $5 bytes.
const olderJobs = `SELECT id, message FROM (
	SELECT *, sum(octet_length(message)) OVER (ORDER BY id DESC) - octet_length(message) AS before
	FROM (SELECT id, message FROM jobs WHERE ($1 OR id < $2) AND (open OR NOT $3) ORDER BY id DESC LIMIT $4) AS page
) AS summed WHERE before < $5 ORDER BY id DESC`

// older are some jobs before one (empty = the newest on), newest first.
func (p *jobPage) older(v *view, before string) (rows []*lookedAt, err error) {
	var id, message []byte
	args := []any{before == "", []byte(before), p.OnlyOpen(), jobsPerLook, bytesPerLook}
	err = v.query(olderJobs, args, []any{&id, &message}, func() error {
		r := &lookedAt{id: string(id)}
		r.err = decode(message, &r.row)
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// take adds the jobs that are wanted, until the page is full.
func (p *jobPage) take(v *view, rows []*lookedAt) (full bool, err error) {
	for _, r := range rows {
		last := p.SeenEnough(p.seen)
		if len(p.jobs) >= p.Most || last && len(p.jobs) > 0 {
			return true, nil
		}
		p.seen++
		job, err := p.load(v, r)
		if err != nil {
			return false, err
		}
		if job != nil {
			if p.size += proto.Size(job); p.size > p.MostBytes && len(p.jobs) > 0 {
				return true, nil
			}
			p.jobs, p.next = append(p.jobs, job), r.id
		} else if last {
			var ends bool
			if p.next, ends = p.EndsAt(r.id); ends {
				return true, nil
			}
		}
	}
	return false, nil
}

// load returns a job if it is wanted, nil if not; one that cannot be read has failed.
func (p *jobPage) load(v *view, r *lookedAt) (*tilthv1.Job, error) {
	if r.err == nil && len(p.States) > 0 && !slices.Contains(p.States, r.row.GetJob().GetState()) {
		return nil, nil
	}
	if p.Sees != nil {
		owner, told := records.OwnerInRow(&r.row)
		if !told || r.err != nil {
			var unknown error
			if owner, unknown = jobOwner(v, r.id); unknown != nil && !isDamage(unknown) {
				return nil, unknown
			}
			told = unknown == nil
		}
		if told && !p.Sees(owner) {
			return nil, nil
		}
	}
	stored, err := &records.OpenJob{}, r.err
	if err == nil {
		stored, err = loadJob(v, r.id)
	}
	if isDamage(err) {
		return &tilthv1.Job{
			Id: r.id, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: "its rows in the database are damaged", Spec: &tilthv1.JobSpec{},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return stored.Listed(), nil
}

// removedAtOnce bounds how long a transaction that removes rows holds up others.
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

// sweep removes some rows of a job, and its mark after the last.
func (t *txn) sweep(id []byte) error {
	batches := []any{append(slices.Clone(id), '.'), append(slices.Clone(id), '/'), removedAtOnce} // the character after the point
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
