package bolt

import (
	"errors"
	"slices"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Jobs implements records.Jobs.
func (db *DB) Jobs(query records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	q := jobQuery{query}
	err = db.view(func(tx *txn) error {
		size := 0
		c := q.bucket(tx).cursor()
		for k, seen := q.first(c), 0; k != nil; k, _ = c.Prev() {
			last := q.SeenEnough(seen)
			if len(jobs) >= q.Max || last && len(jobs) > 0 {
				return nil
			}
			seen++
			job, err := q.load(tx, string(k))
			if tx.skipDamage(err) || errors.Is(err, records.ErrNotFound) {
				job = damagedJob(string(k))
			} else if err != nil {
				return err
			}
			if job != nil {
				if size += proto.Size(job); size > q.MaxBytes && len(jobs) > 0 {
					return nil
				}
				jobs, next = append(jobs, job), string(k)
			} else if last {
				var ends bool
				if next, ends = q.EndsAt(string(k)); ends {
					return nil
				}
			}
		}
		next = ""
		return nil
	})
	return jobs, next, err
}

type jobQuery struct{ records.JobQuery }

// bucket returns the bucket whose keys are the ids to scan. It avoids ended jobs if the query excludes them.
func (q *jobQuery) bucket(tx *txn) table {
	if q.OnlyOpen() {
		return tx.table(bucketOpen)
	}
	return tx.table(bucketJobs)
}

// first returns the newest id to examine.
func (q *jobQuery) first(c *bbolt.Cursor) []byte {
	if q.Before == "" {
		k, _ := c.Last()
		return k
	}
	if k, _ := c.Seek([]byte(q.Before)); k == nil {
		k, _ = c.Last()
		return k
	}
	k, _ := c.Prev()
	return k
}

// damagedJob returns a placeholder for an unreadable job.
func damagedJob(id string) *tilthv1.Job {
	return &tilthv1.Job{
		Id: id, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: "its rows in the records file are damaged", Spec: &tilthv1.JobSpec{},
	}
}

// load returns a job if the query selects it, else nil.
func (q *jobQuery) load(tx *txn, id string) (*tilthv1.Job, error) {
	var row storev1.JobRow
	err := lookUp(tx, bucketJobs, id, &row)
	if err == nil && len(q.States) > 0 && !slices.Contains(q.States, row.GetJob().GetState()) {
		return nil, nil
	}
	if q.Sees != nil {
		owner, told := records.OwnerInRow(&row)
		if !told || err != nil {
			var unknown error
			owner, unknown = jobOwner(tx, id)
			told = unknown == nil
		}
		if told && !q.Sees(owner) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	stored, err := loadJob(tx, id)
	if err != nil {
		return nil, err
	}
	return stored.Listed(), nil
}
