package records

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// OpenJob is what a tracker needs to go on with a job that has not ended.
type OpenJob struct {
	Row      *storev1.JobRow
	Spec     *tilthv1.JobSpec
	Progress []*tilthv1.TaskProgress
	// Sequence of the job's last event.
	LastSequence uint64
}

// OpenBatch is a batch under way with its candidates.
type OpenBatch struct {
	ID         string
	Row        *storev1.BatchRow
	Candidates []*tilthv1.Candidate
}

// Job returns a job with its specification and progress. ErrNotFound when there is none.
func (db *DB) Job(id string) (job *tilthv1.Job, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		open, err := loadJob(tx, id)
		if err != nil {
			return err
		}
		job = open.Row.GetJob()
		job.Spec = open.Spec
		job.Progress = open.Progress
		return nil
	})
	return job, err
}

// JobRow returns a job's row: its state and lease without specification and progress. ErrNotFound when there is none.
func (db *DB) JobRow(id string) (*storev1.JobRow, error) {
	row := &storev1.JobRow{}
	err := db.view(func(tx *bbolt.Tx) error { return lookUp(tx, bucketJobs, id, row) })
	return row, err
}

// JobByRequest returns the job that a request made. ErrNotFound when there is none.
func (db *DB) JobByRequest(requestID string) (*tilthv1.Job, error) {
	var id string
	err := db.view(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketRequests).Get([]byte(requestID))
		if value == nil {
			return fmt.Errorf("request %q: %w", requestID, ErrNotFound)
		}
		id = string(value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return db.Job(id)
}

// OpenJobs returns all jobs that have not ended, oldest first.
func (db *DB) OpenJobs() (jobs []*OpenJob, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketOpen).ForEach(func(id, _ []byte) error {
			job, err := loadJob(tx, string(id))
			if err != nil {
				return err
			}
			jobs = append(jobs, job)
			return nil
		})
	})
	return jobs, err
}

// LastJobID returns the id of the newest job; empty when there is none.
func (db *DB) LastJobID() (id string, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket(bucketJobs).Cursor().Last()
		id = string(k)
		return nil
	})
	return id, err
}

func loadJob(tx *bbolt.Tx, id string) (*OpenJob, error) {
	job := &OpenJob{Row: &storev1.JobRow{}, Spec: &tilthv1.JobSpec{}}
	if err := lookUp(tx, bucketJobs, id, job.Row); err != nil {
		return nil, err
	}
	if err := lookUp(tx, bucketSpecs, id, job.Spec); err != nil {
		return nil, err
	}
	progress := tx.Bucket(bucketProgress)
	for i := range job.Spec.GetTasks() {
		p := &tilthv1.TaskProgress{}
		if err := decode(progress.Get(progressKey(id, uint32(i))), p); err != nil {
			return nil, err
		}
		job.Progress = append(job.Progress, p)
	}
	job.LastSequence = lastSequence(tx, id)
	return job, nil
}

// lastSequence finds the last key of the job's events: the one before where the next job's would begin.
func lastSequence(tx *bbolt.Tx, jobID string) uint64 {
	c := tx.Bucket(bucketEvents).Cursor()
	k, _ := c.Seek(append([]byte(jobID), 1))
	if k == nil {
		k, _ = c.Last()
	} else {
		k, _ = c.Prev()
	}
	prefix := append([]byte(jobID), 0)
	if !bytes.HasPrefix(k, prefix) || len(k) != len(prefix)+8 {
		return 0
	}
	return binary.BigEndian.Uint64(k[len(prefix):])
}

// OpenBatches returns all batches under way with their candidates, in the order of their ids.
func (db *DB) OpenBatches() (batches []*OpenBatch, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketBatches).ForEach(func(id, value []byte) error {
			b := &OpenBatch{ID: string(id), Row: &storev1.BatchRow{}}
			batches = append(batches, b)
			return b.load(tx, value)
		})
	})
	return batches, err
}

// DeadBatch returns a batch that the farm gave up, with its candidates. ErrNotFound when it is none.
func (db *DB) DeadBatch(id string) (*OpenBatch, error) {
	b := &OpenBatch{ID: id, Row: &storev1.BatchRow{}}
	err := db.view(func(tx *bbolt.Tx) error {
		if err := lookUp(tx, bucketClosed, id, b.Row); err != nil {
			return err
		}
		if b.Row.GetStage() != storev1.Stage_STAGE_DEAD {
			return fmt.Errorf("dead letter %q: %w", id, ErrNotFound)
		}
		return b.loadCandidates(tx)
	})
	return b, err
}

func (b *OpenBatch) load(tx *bbolt.Tx, row []byte) error {
	if err := decode(row, b.Row); err != nil {
		return err
	}
	return b.loadCandidates(tx)
}

func (b *OpenBatch) loadCandidates(tx *bbolt.Tx) error {
	var event storev1.EventRow
	key := eventKey(b.Row.GetJobId(), b.Row.GetEventSequence())
	if err := decode(tx.Bucket(bucketEvents).Get(key), &event); err != nil {
		return fmt.Errorf("candidates of batch %s: %w", b.ID, err)
	}
	b.Candidates = event.GetEvent().GetProposed().GetCandidates()
	return nil
}

// ClosedBatch returns what is kept of a batch that ended. ErrNotFound when there is none, or it is still under way.
func (db *DB) ClosedBatch(id string) (*storev1.BatchRow, error) {
	row := &storev1.BatchRow{}
	err := db.view(func(tx *bbolt.Tx) error { return lookUp(tx, bucketClosed, id, row) })
	return row, err
}

// ClosedJobs returns the ids of the jobs of which closed batches are kept, in their order, with the number of batches that each has
// proposed. It looks at one row of each.
func (db *DB) ClosedJobs() (ids []string, proposals []uint64, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketClosed).Cursor()
		for k, v := c.First(); k != nil; {
			var batch storev1.BatchRow
			if err := decode(v, &batch); err != nil {
				return err
			}
			var row storev1.JobRow
			if err := lookUp(tx, bucketJobs, batch.GetJobId(), &row); err != nil {
				return err
			}
			ids, proposals = append(ids, batch.GetJobId()), append(proposals, row.GetProposals())
			// Batches of the job begin with its id and a point, which the next character follows.
			k, v = c.Seek([]byte(batch.GetJobId() + "/"))
		}
		return nil
	})
	return ids, proposals, err
}

// Agents calls visit with every agent that is kept, by name. One of them is in memory at a time.
func (db *DB) Agents(visit func(*tilthv1.Agent)) error {
	return db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAgents).ForEach(func(_, value []byte) error {
			a := &tilthv1.Agent{}
			if err := decode(value, a); err != nil {
				return err
			}
			visit(a)
			return nil
		})
	})
}

func lookUp(tx *bbolt.Tx, bucket []byte, key string, into proto.Message) error {
	value := tx.Bucket(bucket).Get([]byte(key))
	if value == nil {
		return fmt.Errorf("%s %q: %w", bucket, key, ErrNotFound)
	}
	return decode(value, into)
}

func decode(value []byte, into proto.Message) error {
	if value == nil {
		return fmt.Errorf("%w: a %s is missing", ErrDamaged, into.ProtoReflect().Descriptor().Name())
	}
	if err := proto.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	return nil
}
