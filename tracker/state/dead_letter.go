package state

import (
	"fmt"
	"slices"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// maxDeadLetters bounds the dead letters of a job. A job that reaches it fails: the farm cannot tune it.
const maxDeadLetters = 100

// addDeadLetter gives up a batch and records it as a dead letter of its job.
func (c *Change) addDeadLetter(b *batch, class tilthv1.ErrorClass, message string) {
	letter := &tilthv1.DeadLetter{
		BatchId: b.id, TaskIndex: b.task, Error: class, Message: clip(message, maxMessageBytes), Attempts: b.failures, Agents: b.failedBy,
	}
	j := b.job
	j.meta.DeadLetters = append(j.meta.DeadLetters, letter)
	e := c.event(j)
	e.Event = &tilthv1.JobEvent_DeadLetter{DeadLetter: letter}
	c.store(j, e)
	c.dropBatch(b)
	delete(c.moved, b)
	b.stage = storev1.Stage_STAGE_DEAD
	c.write.CloseBatch(b.id, b.row())
	c.addFact(GaveUp(class))
	c.log.Error("batch given up", "batch", b.id, "class", class.String(), "message", message, "agents", b.failedBy)
	if len(j.meta.GetDeadLetters()) >= maxDeadLetters {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, fmt.Sprintf("the farm gave up %d batches, the last: %s", maxDeadLetters, letter.GetMessage()))
	}
}

// DeadBatch is a dead letter with the stored row of its batch.
type DeadBatch struct {
	Letter *tilthv1.DeadLetter
	Stored *records.OpenBatch
}

// stillDead restores the batches that are still dead letters of the job.
func (c *Change) stillDead(j *job, dead []DeadBatch) (out []*batch, err error) {
	for _, d := range dead {
		if !slices.Contains(j.meta.GetDeadLetters(), d.Letter) {
			continue
		}
		b, err := c.restore(j, d.Stored)
		if err != nil {
			return nil, refuseStore(err)
		}
		out = append(out, b)
	}
	return out, nil
}

// requeueDead requeues a dead batch for building and clears its failures.
func (c *Change) requeueDead(b *batch) {
	j := b.job
	j.meta.DeadLetters = slices.DeleteFunc(j.meta.GetDeadLetters(), func(d *tilthv1.DeadLetter) bool { return d.GetBatchId() == b.id })
	b.stage, b.failedBy = storev1.Stage_STAGE_BUILD, nil
	b.faults, b.failures = 0, 0
	e := c.event(j)
	e.Event = &tilthv1.JobEvent_Retried{Retried: &tilthv1.BatchRetried{BatchId: b.id, TaskIndex: b.task, Trials: uint32(b.open)}}
	c.store(j, e)
	c.write.ReopenBatch(b.id)
	c.addBatch(b)
	c.move(b)
	c.enqueue(b, false)
	c.log.Info("dead letter retried", "batch", b.id)
}

// DeadLetters returns the dead letters of an open job.
func (m *Machine) DeadLetters(jobID string) []*tilthv1.DeadLetter {
	if j := m.jobs[jobID]; j != nil {
		return slices.Clone(j.meta.GetDeadLetters())
	}
	return nil
}

// RetryDead requeues those of the given batches that are still dead letters of the job, and returns their ids. ok is
// false if the job has ended.
func (c *Change) RetryDead(jobID string, dead []DeadBatch) (ids []string, ok bool, err error) {
	j := c.jobs[jobID]
	if j == nil {
		return nil, false, nil
	}
	batches, err := c.stillDead(j, dead)
	for _, b := range batches {
		c.requeueDead(b)
		ids = append(ids, b.id)
	}
	return ids, true, err
}
