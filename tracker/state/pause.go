package state

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// pause takes a job out of the queues and from its tuner. Builders and runners finish the leases that they hold.
func (c *Change) pause(j *job, reason string) {
	if j.paused() {
		return
	}
	c.withdraw(j)
	c.release(j)
	j.meta.PausedAt = c.now()
	c.setState(j, tilthv1.JobState_JOB_STATE_PAUSED, reason)
}

// resume requeues all work that no agent holds.
func (c *Change) resume(j *job, reason string) {
	if !j.paused() {
		return
	}
	if j.meta.GetStartedAt() != nil {
		// The wall clock may have been set back.
		pause := max(c.cfg.Now().Sub(j.meta.GetPausedAt().AsTime()), 0)
		j.meta.Paused = durationpb.New(j.meta.GetPaused().AsDuration() + pause.Round(time.Millisecond))
	}
	j.meta.PausedAt = nil
	c.setState(j, j.waiting(), reason)
	for _, b := range j.inOrder() {
		if b.lease == nil && b.retry == nil { // a scheduled retry keeps its time
			c.enqueue(b, false)
		}
	}
	c.enqueue(j, false)
}

// Pause pauses a job; ok is false if the job has ended or never existed.
func (c *Change) Pause(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j != nil {
		c.pause(j, reason)
	}
	return j != nil
}

// Resume resumes a paused job; ok is as for Pause.
func (c *Change) Resume(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j != nil {
		c.resume(j, reason)
	}
	return j != nil
}

// Cancel ends an open job.
func (c *Change) Cancel(id, reason string) {
	if j := c.jobs[id]; j != nil {
		c.end(j, tilthv1.JobState_JOB_STATE_CANCELLED, reason)
	}
}
