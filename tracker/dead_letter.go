package tracker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// mostDeadLetters is how many a job may have: a farm that fails so much of it cannot tune it.
const mostDeadLetters = 100

// bury gives a batch up and tells it as a dead letter of its job.
func (c *change) bury(b *batch, class tilthv1.ErrorClass, message string) {
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
	c.metrics.deadLetters.WithLabelValues(errorName(class)).Inc()
	c.log.Error("batch given up", "batch", b.id, "class", class.String(), "message", message, "agents", b.failedBy)
	if len(j.meta.GetDeadLetters()) >= mostDeadLetters {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, fmt.Sprintf("the farm gave up %d batches, the last: %s", mostDeadLetters, letter.GetMessage()))
	}
}

// RetryDeadLetters implements tilthv1.JobServiceServer.
func (t *Tracker) RetryDeadLetters(ctx context.Context, req *tilthv1.RetryDeadLettersRequest) (*tilthv1.RetryDeadLettersResponse, error) {
	// Candidates are on disk only, and what is in memory may not be yet: update returns when all that it saw is.
	var seen []*tilthv1.DeadLetter
	err := t.update(ctx, func(c *change) error {
		if j := c.jobs[req.GetJobId()]; j != nil {
			seen = slices.Clone(j.meta.GetDeadLetters())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	dead, err := t.deadBatches(seen, req.GetBatchIds())
	if err != nil {
		return nil, err
	}
	response := &tilthv1.RetryDeadLettersResponse{}
	response.Job, err = t.control(ctx, req.GetJobId(), func(c *change, j *job) error {
		batches, err := c.stillDead(j, dead)
		for _, b := range batches {
			c.unbury(b)
			response.BatchIds = append(response.BatchIds, b.id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// deadBatch is a dead letter with what is stored of its batch.
type deadBatch struct {
	letter *tilthv1.DeadLetter
	stored *records.OpenBatch
}

// deadBatches reads the batches of dead letters that are named, or of all.
func (t *Tracker) deadBatches(letters []*tilthv1.DeadLetter, ids []string) (out []deadBatch, err error) {
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	for _, letter := range letters {
		if len(ids) > 0 && !named[letter.GetBatchId()] {
			continue
		}
		stored, err := t.db.DeadBatch(letter.GetBatchId())
		if errors.Is(err, records.ErrNotFound) {
			continue // a letter from before they were kept whole, or somebody else was faster
		}
		if err != nil {
			return nil, storeError(err)
		}
		out = append(out, deadBatch{letter, stored})
	}
	return out, nil
}

// stillDead makes batches of those that are dead letters of the job until now.
func (c *change) stillDead(j *job, dead []deadBatch) (out []*batch, err error) {
	for _, d := range dead {
		if !slices.Contains(j.meta.GetDeadLetters(), d.letter) {
			continue
		}
		b, err := c.restore(j, d.stored)
		if err != nil {
			return nil, storeError(err)
		}
		out = append(out, b)
	}
	return out, nil
}

// unbury has a batch built and measured again, as if nobody had failed it.
func (c *change) unbury(b *batch) {
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
	c.log.Info("dead letter tried again", "batch", b.id)
}
