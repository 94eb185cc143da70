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

// Jobs returns jobs, newest first, without their workloads and what each package of a run told of itself. next is what
// Before is for the page that follows; it is empty after the last one, and names no job that query.Sees leaves out.
// A page may have fewer jobs than asked for, or none, and others follow.
func (db *DB) Jobs(query records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	q := jobQuery(query)
	err = db.view(func(tx *txn) error {
		size := 0
		c := q.bucket(tx).cursor()
		for k, seen := q.first(c), 0; k != nil; k, _ = c.Prev() {
			last := seen >= records.MostJobsSeen
			if len(jobs) >= q.Most || last && len(jobs) > 0 {
				return nil
			}
			seen++
			job, hidden, err := q.load(tx, string(k), last)
			if tx.passOver(err) || errors.Is(err, records.ErrNotFound) {
				job = damagedJob(string(k))
			} else if err != nil {
				return err
			}
			if job != nil {
				if size += proto.Size(job); size > q.MostBytes && len(jobs) > 0 {
					return nil
				}
				jobs, next = append(jobs, job), string(k)
			} else if last && !hidden {
				next = string(k)
				return nil
			}
		}
		next = ""
		return nil
	})
	return jobs, next, err
}

type jobQuery records.JobQuery

// bucket is the one whose keys are the ids to look through: jobs that have ended are passed over where none of them is
// wanted.
func (q *jobQuery) bucket(tx *txn) table {
	if (*records.JobQuery)(q).OnlyOpen() {
		return tx.table(bucketOpen)
	}
	return tx.table(bucketJobs)
}

// first is the newest id wanted.
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

// damagedJob stands for a job that cannot be read.
func damagedJob(id string) *tilthv1.Job {
	return &tilthv1.Job{
		Id: id, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: "its rows in the records file are damaged", Spec: &tilthv1.JobSpec{},
	}
}

// load returns a job if it is wanted. hidden says that it is not for its owner's sake, which is looked for in a job of
// another state, too, where the page may end at it.
func (q *jobQuery) load(tx *txn, id string, ends bool) (job *tilthv1.Job, hidden bool, err error) {
	var row storev1.JobRow
	err = lookUp(tx, bucketJobs, id, &row)
	unwanted := err == nil && len(q.States) > 0 && !slices.Contains(q.States, row.GetJob().GetState())
	if unwanted && !ends {
		return nil, false, nil
	}
	if q.Sees != nil {
		if owner, err := jobOwner(tx, id); err == nil && !q.Sees(owner) {
			return nil, true, nil
		}
	}
	if err != nil || unwanted {
		return nil, false, err
	}
	stored, err := loadJob(tx, id)
	if err != nil {
		return nil, false, err
	}
	return stored.Listed(), false, nil
}
