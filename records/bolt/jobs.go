package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Job implements records.Jobs.
func (db *DB) Job(id string) (job *tilthv1.Job, err error) {
	err = db.view(func(tx *txn) error {
		open, err := loadJob(tx, id)
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
	return row, db.view(func(tx *txn) error { return lookUp(tx, bucketJobs, id, row) })
}

// OpenJobs implements records.Jobs.
func (db *DB) OpenJobs() (jobs []*records.OpenJob, err error) {
	err = db.view(func(tx *txn) error {
		ids, err := openIDs(tx)
		for _, id := range ids {
			job, err := loadJob(tx, id)
			if err != nil && !errors.Is(err, records.ErrDamaged) && !errors.Is(err, records.ErrNotFound) {
				return err
			}
			tx.skipDamage(err)
			job.Damage = err
			jobs = append(jobs, job)
		}
		return err
	})
	return jobs, err
}

// openIDs returns the ids of the open jobs. If a row of bucket open is damaged, it scans the rows of all jobs instead.
func openIDs(tx *txn) (ids []string, err error) {
	damaged := false
	err = tx.table(bucketOpen).each(func(id, _ []byte, err error) error {
		ids = append(ids, string(id))
		damaged = tx.skipDamage(err) || damaged
		return nil
	})
	if err != nil || !damaged {
		return ids, err
	}
	ids = nil
	err = tx.table(bucketJobs).each(func(id, value []byte, err error) error {
		var row storev1.JobRow
		if err == nil {
			err = tx.table(bucketJobs).parse(id, value, &row)
		}
		if tx.skipDamage(err) || !records.Final(row.GetJob().GetState()) {
			ids = append(ids, string(id))
		}
		return nil
	})
	return ids, err
}

// LastJobID implements records.Jobs.
func (db *DB) LastJobID() (id string, err error) {
	err = db.view(func(tx *txn) error {
		jobs := tx.table(bucketJobs)
		c := jobs.cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			if _, err := jobs.open(k, v); !tx.skipDamage(err) {
				id = string(k)
				break
			}
		}
		last, err := tx.table(bucketMeta).get(keyLastJob)
		if !tx.skipDamage(err) {
			id = max(id, string(last))
		}
		return nil
	})
	return id, err
}

func loadJob(tx *txn, id string) (*records.OpenJob, error) {
	job := &records.OpenJob{ID: id, Row: &storev1.JobRow{}, Spec: &tilthv1.JobSpec{}}
	if err := lookUp(tx, bucketJobs, id, job.Row); err != nil {
		return job, err
	}
	if err := lookUp(tx, bucketSpecs, id, job.Spec); err != nil {
		return job, err
	}
	records.CutJob(job.Row, job.Spec)
	progress := tx.table(bucketProgress)
	for i := range job.Spec.GetTasks() {
		p := &tilthv1.TaskProgress{}
		if err := progress.load(progressKey(id, uint32(i)), p); err != nil {
			return job, err
		}
		job.Progress = append(job.Progress, p)
	}
	var err error
	job.LastSequence, err = lastSequence(tx, id)
	return job, err
}

// lastSequence returns the sequence in the last key of a job's events, which precedes the next job's first. It
// verifies the row at that position even if the key looks like another job's, since a damaged key may have been this
// job's.
func lastSequence(tx *txn, jobID string) (uint64, error) {
	events := tx.table(bucketEvents)
	c := events.cursor()
	k, v := lastBefore(c, append([]byte(jobID), 1))
	if k != nil {
		if _, err := events.open(k, v); err != nil {
			return 0, err
		}
	}
	prefix := append([]byte(jobID), 0)
	if !bytes.HasPrefix(k, prefix) || len(k) != len(prefix)+8 {
		return 0, nil
	}
	return binary.BigEndian.Uint64(k[len(prefix):]), nil
}

// OpenBatches implements records.Batches.
func (db *DB) OpenBatches() (batches []*records.OpenBatch, err error) {
	err = db.view(func(tx *txn) error {
		return tx.table(bucketBatches).each(func(id, value []byte, err error) error {
			b := &records.OpenBatch{ID: string(id), Row: &storev1.BatchRow{}, Damage: err}
			if err == nil {
				b.Damage = tx.table(bucketBatches).parse(id, value, b.Row)
			}
			if b.Damage == nil {
				b.Damage = loadCandidates(tx, b)
			}
			tx.skipDamage(b.Damage)
			batches = append(batches, b)
			return nil
		})
	})
	return batches, err
}

// DeadBatch implements records.Batches.
func (db *DB) DeadBatch(id string) (*records.OpenBatch, error) {
	b := &records.OpenBatch{ID: id, Row: &storev1.BatchRow{}}
	return b, db.view(func(tx *txn) error {
		if err := lookUp(tx, bucketClosed, id, b.Row); err != nil {
			return err
		}
		if b.Row.GetStage() != storev1.Stage_STAGE_DEAD {
			return fmt.Errorf("dead letter %q: %w", id, records.ErrNotFound)
		}
		return loadCandidates(tx, b)
	})
}

func loadCandidates(tx *txn, b *records.OpenBatch) error {
	var event storev1.EventRow
	key := eventKey(b.Row.GetJobId(), b.Row.GetEventSequence())
	if err := tx.table(bucketEvents).load(key, &event); err != nil {
		return fmt.Errorf("candidates of batch %s: %w", b.ID, err)
	}
	b.Take(event.GetEvent().GetProposed())
	return nil
}

// ClosedBatch implements records.Batches.
func (db *DB) ClosedBatch(id string) (*storev1.BatchRow, error) {
	row := &storev1.BatchRow{}
	return row, db.view(func(tx *txn) error { return lookUp(tx, bucketClosed, id, row) })
}

// ClosedProposal implements records.Batches.
func (db *DB) ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error) {
	row = &storev1.BatchRow{}
	err = db.view(func(tx *txn) error {
		closed := tx.table(bucketClosed)
		k, v := closed.cursor().Seek([]byte(begin))
		if id = string(k); id != begin && !strings.HasPrefix(id, begin+"-") {
			return fmt.Errorf("%s %q: %w", bucketClosed, begin, records.ErrNotFound)
		}
		return closed.read(k, v, row)
	})
	return id, row, err
}

// ClosedJobs implements records.Batches.
func (db *DB) ClosedJobs() (ids []string, proposals []uint64, err error) {
	err = db.view(func(tx *txn) error {
		closed := tx.table(bucketClosed)
		c := closed.cursor()
		for k, v := c.First(); k != nil; {
			var batch storev1.BatchRow
			if err := closed.read(k, v, &batch); tx.skipDamage(err) {
				k, v = c.Next()
				continue
			} else if err != nil {
				return err
			}
			var row storev1.JobRow
			if err := lookUp(tx, bucketJobs, batch.GetJobId(), &row); err != nil && !tx.skipDamage(err) && !errors.Is(err, records.ErrNotFound) {
				return err
			}
			ids, proposals = append(ids, batch.GetJobId()), append(proposals, row.GetProposals())
			// Ids of a job's batches start with its id and '.'; '/' is the next character.
			k, v = c.Seek([]byte(batch.GetJobId() + "/"))
		}
		return nil
	})
	return ids, proposals, err
}

func lookUp(tx *txn, bucket []byte, key string, into proto.Message) error {
	value, err := tx.table(bucket).get([]byte(key))
	if err == nil && value == nil {
		return fmt.Errorf("%s %q: %w", bucket, key, records.ErrNotFound)
	}
	if err != nil {
		return err
	}
	return tx.table(bucket).parse([]byte(key), value, into)
}

// JobByRequest implements records.Jobs.
func (db *DB) JobByRequest(owner, requestID string) (id string, err error) {
	err = db.view(func(tx *txn) error {
		value, err := tx.table(bucketRequests).get(records.RequestKey(owner, requestID))
		if err == nil && value == nil {
			err = fmt.Errorf("request %q of %q: %w", requestID, owner, records.ErrNotFound)
		}
		id = string(value)
		return err
	})
	return id, err
}

// JobOwner implements records.Jobs.
func (db *DB) JobOwner(id string) (owner records.Owner, err error) {
	err = db.view(func(tx *txn) error {
		owner, err = jobOwner(tx, id)
		return err
	})
	return owner, err
}

func jobOwner(tx *txn, id string) (records.Owner, error) {
	spec, err := tx.table(bucketSpecs).get([]byte(id))
	if err == nil && spec == nil {
		err = fmt.Errorf("job %q: %w", id, records.ErrNotFound)
	}
	return records.OwnerOf(spec), err
}

// Jobs implements records.Jobs.
func (db *DB) Jobs(query records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	q := jobQuery{query}
	p := records.JobPage{JobQuery: query}
	err = db.view(func(tx *txn) error {
		ids := bucketJobs
		if q.OnlyOpen() {
			ids = bucketOpen // without the ended jobs
		}
		c := tx.table(ids).cursor()
		for k := q.first(c); k != nil; k, _ = c.Prev() {
			full, err := p.Take(string(k), func() (*tilthv1.Job, error) { return q.load(tx, string(k)) })
			if full || err != nil {
				return err
			}
		}
		p.Next = ""
		return nil
	})
	return p.Jobs, p.Next, err
}

type jobQuery struct{ records.JobQuery }

// first returns the newest id to examine.
func (q *jobQuery) first(c *bbolt.Cursor) []byte {
	var bound []byte
	if q.Before != "" {
		bound = []byte(q.Before)
	}
	k, _ := lastBefore(c, bound)
	return k
}

// load returns a job if the query selects it, else nil. An unreadable job is returned as failed.
func (q *jobQuery) load(tx *txn, id string) (*tilthv1.Job, error) {
	var row storev1.JobRow
	damage := lookUp(tx, bucketJobs, id, &row)
	selected, err := q.Selects(&row, damage, func() (records.Owner, error) { return jobOwner(tx, id) })
	if err != nil || !selected {
		return nil, err
	}
	stored, err := &records.OpenJob{}, damage
	if err == nil {
		stored, err = loadJob(tx, id)
	}
	if tx.skipDamage(err) || errors.Is(err, records.ErrNotFound) {
		return records.Unreadable(id, "its rows in the records file are damaged"), nil
	}
	if err != nil {
		return nil, err
	}
	return stored.Listed(), nil
}

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
