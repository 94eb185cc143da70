package bolt

import (
	"errors"

	"go.etcd.io/bbolt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Jobs implements records.Jobs.
func (db *DB) Jobs(query records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	q := jobQuery{query}
	p := records.JobPage{JobQuery: query}
	err = db.view(func(tx *txn) error {
		c := q.bucket(tx).cursor()
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

// bucket returns the bucket whose keys are the ids to scan. It avoids ended jobs if the query excludes them.
func (q *jobQuery) bucket(tx *txn) table {
	if q.OnlyOpen() {
		return tx.table(bucketOpen)
	}
	return tx.table(bucketJobs)
}

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
