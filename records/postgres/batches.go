package postgres

import (
	"fmt"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// OpenBatches implements records.Batches.
func (db *DB) OpenBatches() (open []*records.OpenBatch, err error) {
	for after, more := "", true; more; {
		var page []*records.OpenBatch
		err := db.all(func(v *view) (err error) {
			page, err = batchesAfter(v, db.shard, after)
			return err
		})
		if err != nil {
			return nil, err
		}
		open, more = append(open, page...), len(page) == openPerView
		if more {
			after = page[len(page)-1].ID
		}
	}
	return open, nil
}

// batchesAfter returns some of a shard's open batches after an id, with their candidates.
func batchesAfter(v *view, shard int, after string) (page []*records.OpenBatch, err error) {
	var sound []*records.OpenBatch
	var id, message []byte
	err = v.query("SELECT id, message FROM batches WHERE shard = $1 AND id > $2 ORDER BY id LIMIT $3", []any{shard, []byte(after), openPerView},
		[]any{&id, &message}, func() error {
			b := &records.OpenBatch{ID: string(id), Row: &storev1.BatchRow{}}
			if b.Damage = decode(message, b.Row); b.Damage == nil {
				sound = append(sound, b)
			}
			page = append(page, b)
			return nil
		})
	if err == nil {
		err = loadCandidates(v, sound)
	}
	return page, err
}

// loadCandidates loads the proposed candidates. A batch without the event of its proposal is damaged.
func loadCandidates(v *view, batches []*records.OpenBatch) error {
	jobs, sequences := make([][]byte, len(batches)), make([]int64, len(batches))
	for i, b := range batches {
		jobs[i], sequences[i] = []byte(b.Row.GetJobId()), int64(b.Row.GetEventSequence())
	}
	var place int64 // from 1
	var message []byte
	return v.query(`SELECT place, message FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS wanted (job, sequence, place)
		LEFT JOIN events USING (job, sequence)`, []any{jobs, sequences}, []any{&place, &message}, func() error {
		b := batches[place-1]
		if message == nil {
			b.Damage = fmt.Errorf("candidates of batch %s: %w: their event is missing", b.ID, records.ErrDamaged)
			return nil
		}
		var row storev1.EventRow
		b.Damage = decode(message, &row)
		b.Take(row.GetEvent().GetProposed())
		return nil
	})
}

// DeadBatch implements records.Batches.
func (db *DB) DeadBatch(id string) (*records.OpenBatch, error) {
	b := &records.OpenBatch{ID: id, Row: &storev1.BatchRow{}}
	return b, db.look(func(v *view) error {
		if err := lookUp(v, "closed_batches", id, b.Row); err != nil {
			return err
		}
		if b.Row.GetStage() != storev1.Stage_STAGE_DEAD {
			return fmt.Errorf("dead letter %q: %w", id, records.ErrNotFound)
		}
		if err := loadCandidates(v, []*records.OpenBatch{b}); err != nil {
			return err
		}
		return b.Damage
	})
}

// ClosedBatch implements records.Batches.
func (db *DB) ClosedBatch(id string) (*storev1.BatchRow, error) {
	row := &storev1.BatchRow{}
	return row, db.look(func(v *view) error { return lookUp(v, "closed_batches", id, row) })
}

// closedFrom returns the first closed batch from an id on, if any.
func closedFrom(v *view, from string, row *storev1.BatchRow) (id string, there bool, err error) {
	var found, message []byte
	there, err = one(v, "SELECT id, message FROM closed_batches WHERE id >= $1 ORDER BY id LIMIT 1", []any{[]byte(from)}, []any{&found, &message})
	if err == nil && there {
		err = decode(message, row)
	}
	return string(found), there, err
}

// ClosedProposal implements records.Batches.
func (db *DB) ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error) {
	row = &storev1.BatchRow{}
	err = db.look(func(v *view) error {
		var there bool
		id, there, err = closedFrom(v, begin, row)
		if err == nil && (!there || id != begin && !strings.HasPrefix(id, begin+"-")) {
			err = fmt.Errorf("closed batch %q: %w", begin, records.ErrNotFound)
		}
		return err
	})
	return id, row, err
}

// ClosedJobs implements records.Batches.
func (db *DB) ClosedJobs() (ids []string, proposals []uint64, err error) {
	for from, more := "", true; more; {
		var page []string
		err := db.all(func(v *view) (err error) {
			if page, from, err = closedJobsFrom(v, from); err != nil {
				return err
			}
			return db.eachOwn(v, page, func(id string, row *storev1.JobRow) {
				ids, proposals = append(ids, id), append(proposals, row.GetProposals())
			})
		})
		if err != nil {
			return nil, nil, err
		}
		more = len(page) == openPerView
	}
	return ids, proposals, nil
}

// jobOfBatch extracts a job's id from a batch's id, the part before the first '.'.
const jobOfBatch = `substring(batch.id FOR position('\x2e'::bytea IN batch.id || '\x2e'::bytea) - 1)`

// closedJobs selects up to $2 jobs of any shard with closed batches from id $1 on. It skips from the first batch of
// each job to that of the next: '/' follows '.' and thus all batches of a job.
const closedJobs = `WITH RECURSIVE batch (id, n) AS (
	(SELECT id, 1 FROM closed_batches WHERE id >= $1 ORDER BY id LIMIT 1)
	UNION ALL SELECT (SELECT next.id FROM closed_batches next WHERE next.id >= ` + jobOfBatch + ` || '\x2f'::bytea ORDER BY next.id LIMIT 1), n + 1
	FROM batch WHERE id IS NOT NULL AND n < $2
) SELECT ` + jobOfBatch + ` FROM batch WHERE id IS NOT NULL ORDER BY n`

// closedJobsFrom returns some jobs of any shard with closed batches from an id on, and the start of the next page.
func closedJobsFrom(v *view, from string) (jobs []string, next string, err error) {
	next = from
	var job []byte
	err = v.query(closedJobs, []any{[]byte(from), openPerView}, []any{&job}, func() error {
		jobs, next = append(jobs, string(job)), string(job)+"/"
		return nil
	})
	return jobs, next, err
}
