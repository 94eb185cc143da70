package state

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// pause takes a job from the queues and from its tuner. What builders and runners hold of it they finish.
func (c *Change) pause(j *job, reason string) {
	if j.paused() {
		return
	}
	c.withdraw(j)
	c.release(j)
	j.meta.PausedAt = c.now()
	c.setState(j, tilthv1.JobState_JOB_STATE_PAUSED, reason)
}

// resume puts back what is in nobody's hands.
func (c *Change) resume(j *job, reason string) {
	if !j.paused() {
		return
	}
	if j.meta.GetStartedAt() != nil {
		// The wall's clock may have been set meanwhile.
		pause := max(c.cfg.Now().Sub(j.meta.GetPausedAt().AsTime()), 0)
		j.meta.Paused = durationpb.New(j.meta.GetPaused().AsDuration() + pause.Round(time.Millisecond))
	}
	j.meta.PausedAt = nil
	c.setState(j, j.waiting(), reason)
	for _, b := range j.inOrder() {
		if b.lease == nil && b.retry == nil { // what failed meanwhile waits for its time
			c.enqueue(b, false)
		}
	}
	c.enqueue(j, false)
}

// Pause takes a job from the queues and from its tuner; ok is false when it has ended, or never was.
func (c *Change) Pause(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j != nil {
		c.pause(j, reason)
	}
	return j != nil
}

// Resume has a paused job go on; ok is as with Pause.
func (c *Change) Resume(id, reason string) (ok bool) {
	j := c.jobs[id]
	if j != nil {
		c.resume(j, reason)
	}
	return j != nil
}

// Cancel ends a job that has not ended.
func (c *Change) Cancel(id, reason string) {
	if j := c.jobs[id]; j != nil {
		c.end(j, tilthv1.JobState_JOB_STATE_CANCELLED, reason)
	}
}
