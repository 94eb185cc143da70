package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// storedJob is a job's log in the store.
type storedJob struct {
	state   tilthv1.JobState
	events  []*tilthv1.JobEvent
	batches map[string]*storedBatch
	// workloads are the digests of its tasks.
	workloads []string
}

// storedBatch is a batch in the log.
type storedBatch struct {
	id      string
	task    uint32
	trials  map[string]*storedTrial // by digest
	dropped bool                    // abandoned, or ended with its job
	pruned  uint32                  // number of trials with pruned records
}

type storedTrial struct {
	number   uint32
	recorded bool
	outcome  string // see signature
}

// readJob reads a job's log and checks its consistency.
func (c *checker) readJob(id string) error {
	job, err := c.db.Job(id)
	if err != nil {
		return err
	}
	events, err := c.db.Events(id, 1, 1<<20)
	if err != nil {
		return err
	}
	j := &storedJob{state: job.GetState(), events: events, batches: map[string]*storedBatch{}}
	c.jobs[id] = j
	for _, task := range job.GetSpec().GetTasks() {
		j.workloads = append(j.workloads, task.GetWorkloadDigest())
	}
	last := tilthv1.JobState_JOB_STATE_UNSPECIFIED
	for i, e := range events {
		if e.GetSequence() != uint64(i+1) {
			c.violation("job %s: event %d has number %d", id, i+1, e.GetSequence())
		}
		if records.Final(last) {
			c.violation("job %s: event %d comes after the end", id, e.GetSequence())
		}
		if s := e.GetState(); s != nil {
			last = s.GetState()
		}
		c.readEvent(id, j, e)
	}
	if !records.Final(j.state) && !c.amid || last != j.state {
		c.violation("job %s: is %v, its last event says %v", id, j.state, last)
	}
	c.checkProgress(id, j, job)
	return nil
}

// readEvent applies an event of a job.
func (c *checker) readEvent(id string, j *storedJob, e *tilthv1.JobEvent) {
	switch v := e.GetEvent().(type) {
	case *tilthv1.JobEvent_Proposed:
		b := &storedBatch{id: v.Proposed.GetBatchId(), task: v.Proposed.GetTaskIndex(), trials: map[string]*storedTrial{}}
		if j.batches[b.id] != nil {
			c.violation("job %s: batch %s is proposed twice", id, b.id)
		}
		j.batches[b.id] = b
		for _, candidate := range v.Proposed.GetCandidates() {
			b.trials[candidate.GetDigest()] = &storedTrial{number: candidate.GetTrial()}
		}
	case *tilthv1.JobEvent_Trial:
		b := j.batches[v.Trial.GetBatchId()]
		m := v.Trial.GetMeasurement()
		if b != nil && m == nil && c.prunes {
			b.pruned++
			return
		}
		if b == nil || b.trials[m.GetCandidate().GetDigest()] == nil {
			c.violation("job %s: event %d is of a trial that was not proposed", id, e.GetSequence())
			return
		}
		t := b.trials[m.GetCandidate().GetDigest()]
		if t.recorded {
			c.violation("job %s: trial %d of batch %s is recorded twice", id, t.number, b.id)
		}
		if at := m.GetAt().AsTime(); time.Since(at).Abs() > maxSkew/2 {
			c.violation("job %s: trial %d of batch %s is dated %v, by an agent's calendar", id, t.number, b.id, at)
		}
		c.Trials++
		t.recorded, t.outcome = true, signature(m)
	case *tilthv1.JobEvent_DeadLetter:
		c.DeadLetters++
		if b := j.batches[v.DeadLetter.GetBatchId()]; b != nil {
			b.dropped = true
		}
	}
}

// checkProgress compares the summary of a job with its log. Each trial of a finished job must be accounted
// for.
func (c *checker) checkProgress(id string, j *storedJob, job *tilthv1.Job) {
	done := j.state == tilthv1.JobState_JOB_STATE_DONE
	switch j.state {
	case tilthv1.JobState_JOB_STATE_CANCELLED:
		c.Cancelled++
	case tilthv1.JobState_JOB_STATE_FAILED:
		c.Failed++
	}
	trials, proposed := make([]uint32, len(job.GetProgress())), make([]uint32, len(job.GetProgress()))
	numbers := map[string]bool{}
	for _, b := range j.batches {
		for digest, t := range b.trials {
			if number := fmt.Sprint(b.task, t.number); numbers[number] {
				c.violation("job %s: two candidates are trial %d of task %d", id, t.number, b.task)
			} else {
				numbers[number] = true
			}
			proposed[b.task]++
			if t.recorded {
				trials[b.task]++
			} else if done && !b.dropped {
				c.violation("job %s: trial %d of batch %s (%s) is not accounted for", id, t.number, b.id, digest)
			}
		}
		trials[b.task] += b.pruned
		b.dropped = b.dropped || records.Final(j.state) && !done
	}
	for i, p := range job.GetProgress() {
		if p.GetTrials() != trials[i] || p.GetProposed() != proposed[i] {
			c.violation("job %s: task %d sums up %d trials of %d, the log has %d of %d", id, i, p.GetTrials(), p.GetProposed(), trials[i], proposed[i])
		}
	}
}

// batch returns a batch of a job, or nil.
func (c *checker) batch(job, id string) *storedBatch {
	if j := c.jobs[job]; j != nil {
		return j.batches[id]
	}
	return nil
}

// batchOf returns the batch of a builder's or runner's lease, or nil.
func (c *checker) batchOf(token *tilthv1.LeaseToken) *storedBatch {
	l, known := c.leases[tokenKey(token)]
	if !known {
		return nil
	}
	return c.batch(l.GetBuild().GetJobId()+l.GetMeasure().GetJobId(), token.GetSubject())
}

// checkWatched compares the client's view with the log: the same events, in the same order, without gaps.
func (c *checker) checkWatched(watched map[string][]*tilthv1.JobEvent) {
	for id, seen := range watched {
		var stored []*tilthv1.JobEvent
		if j := c.jobs[id]; j != nil {
			stored = j.events
		}
		if c.amid {
			stored = stored[:min(len(stored), len(seen))]
		}
		if !slices.EqualFunc(seen, stored, func(a, b *tilthv1.JobEvent) bool { return proto.Equal(a, b) }) {
			c.violation("job %s: the client saw other events than are stored", id)
		}
	}
}

// checkRecords compares the records with the logs: one per trial, and the correct best one.
func (c *checker) checkRecords() error {
	count := 0
	err := c.db.List(context.Background(), "", "", func(*tilthv1.Record) error {
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if count != c.Trials {
		c.violation("%d records are stored, and %d trials", count, c.Trials)
	}
	best := map[string]*rivals{}
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		for _, e := range c.jobs[id].events {
			if m := e.GetTrial().GetMeasurement(); m != nil {
				workload := c.jobs[id].workloads[e.GetTrial().GetTaskIndex()]
				if best[workload] == nil {
					best[workload] = &rivals{refuted: map[string]bool{}}
				}
				best[workload].add(m)
			}
		}
	}
	maps.DeleteFunc(best, func(_ string, r *rivals) bool { return r.best == nil })
	stored, next, err := c.db.BestPage("", "", 2*len(best)+1, 1<<30)
	if err == nil && next != "" {
		err = errors.New("there are far too many best records")
	}
	if err != nil {
		return err
	}
	if len(stored) != len(best) {
		c.violation("%d workloads have a best record, %d should", len(stored), len(best))
	}
	for _, r := range stored {
		b := best[r.GetWorkloadDigest()]
		if b == nil || signature(b.best) != signature(r.GetMeasurement()) {
			c.violation("workload %s: the best record is %s, and is not by the log", r.GetWorkloadDigest(), signature(r.GetMeasurement()))
		}
	}
	return nil
}

// rivals holds the measurements of a workload, in order of recording.
type rivals struct {
	all     []*tilthv1.Measurement
	refuted map[string]bool // by digest
	best    *tilthv1.Measurement
}

func (r *rivals) add(m *tilthv1.Measurement) {
	digest := m.GetCandidate().GetDigest()
	r.all = append(r.all, m)
	switch {
	case m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE:
		if records.Supersedes(m, r.best) {
			r.best = m
		}
	case records.Disqualifies(m):
		r.refuted[digest] = true
		if r.best.GetCandidate().GetDigest() == digest {
			r.chooseAgain()
		}
	}
}

// chooseAgain determines the best of all measurements that were not refuted, in order of time.
func (r *rivals) chooseAgain() {
	r.best = nil
	byTime := slices.SortedStableFunc(slices.Values(r.all), func(a, b *tilthv1.Measurement) int { return a.GetAt().AsTime().Compare(b.GetAt().AsTime()) })
	for _, m := range byTime {
		if m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE && !r.refuted[m.GetCandidate().GetDigest()] && records.Supersedes(m, r.best) {
			r.best = m
		}
	}
}

// consistent checks the pages of a bbolt file.
func consistent(path string) error {
	db, err := bbolt.Open(path, 0o644, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		var all []string
		for err := range tx.Check() {
			all = append(all, err.Error())
		}
		if len(all) > 0 {
			return fmt.Errorf("its pages are damaged: %s", strings.Join(all, "; "))
		}
		return nil
	})
}
