package tracker

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/show"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// lease is work in an agent's hands until a deadline.
type lease struct {
	token    *tilthv1.LeaseToken
	agent    *agent
	work     work
	deadline time.Time
	// When it was granted, recovered or last listed in a heartbeat, and whether it ever was listed.
	seen   time.Time
	listed bool
	// Heartbeats since then.
	missed int
}

func (l *lease) proto() *tilthv1.LeaseToken {
	if l == nil {
		return nil
	}
	return l.token
}

// grant leases work to an agent. The caller holds the lock, and waits for the store before it tells the agent.
func (t *Tracker) grant(a *agent, w work) (*tilthv1.LeaseWorkResponse, *records.Pending) {
	var response *tilthv1.LeaseWorkResponse
	pending, _ := t.apply(func(c *change) error {
		h := w.held()
		h.attempt++
		token := &tilthv1.LeaseToken{Session: a.session, Subject: w.subject(), Attempt: h.attempt}
		now := c.cfg.Now()
		h.lease = &lease{token: token, agent: a, work: w, deadline: now.Add(c.cfg.LeaseTimeout), seen: now}
		c.leases[w.subject()] = h.lease
		a.leases[w.subject()] = h.lease
		switch w := w.(type) {
		case *job:
			response = c.leaseJob(w)
		case *batch:
			response = c.leaseBatch(w)
		}
		response.Lease = token
		c.metrics.granted.WithLabelValues(show.AgentKind(a.spec.GetKind())).Inc()
		return nil
	})
	return response, pending
}

func (c *change) leaseJob(j *job) *tilthv1.LeaseWorkResponse {
	if j.meta.GetStartedAt() == nil {
		j.meta.StartedAt = c.now()
	}
	c.setState(j, tilthv1.JobState_JOB_STATE_RUNNING, "")
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Search{Search: &tilthv1.SearchWork{Job: j.whole()}}}
}

func (c *change) leaseBatch(b *batch) *tilthv1.LeaseWorkResponse {
	c.move(b)
	target := b.job.spec.GetTarget()
	if b.stage == storev1.Stage_STAGE_BUILD {
		return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Build{Build: &tilthv1.BuildWork{
			BatchId: b.id, JobId: b.job.id, Target: target, Task: b.spec(), Candidates: b.pending(),
		}}}
	}
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Measure{Measure: &tilthv1.MeasureWork{
		BatchId: b.id, JobId: b.job.id, Target: target, Task: b.spec(), Candidates: b.pending(), Artifacts: b.artifacts,
		BestSeconds: b.job.progress[b.task].GetBestSeconds(), Best: bestOf(b.job.progress[b.task]), Mode: b.mode,
	}}}
}

// lookUp returns the work whose lease the token names, if it is in force.
func (t *Tracker) lookUp(token *tilthv1.LeaseToken) work {
	l := t.leases[token.GetSubject()]
	if l == nil || !proto.Equal(l.token, token) {
		return nil
	}
	return l.work
}

// release ends the lease of work, if any.
func (c *change) release(w work) {
	h := w.held()
	if h.lease == nil {
		return
	}
	delete(c.leases, w.subject())
	delete(h.lease.agent.leases, w.subject())
	h.lease = nil
	switch w := w.(type) {
	case *job:
		c.touch(w)
	case *batch:
		c.move(w)
	}
}

// giveBack requeues work without counting the attempt.
func (c *change) giveBack(w work, why string) {
	name := w.held().lease.agent.spec.GetName()
	c.release(w)
	if j, ok := w.(*job); ok {
		c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, name+" "+why)
	}
	c.enqueue(w, true)
}

// lose takes work from an agent that failed it: it is requeued, or given up after too many attempts.
func (c *change) lose(w work, class tilthv1.ErrorClass, message string) {
	h := w.held()
	h.lease.agent.failed++
	h.faults++
	c.release(w)
	c.log.Warn("attempt failed", "subject", w.subject(), "attempt", h.attempt, "class", class.String(), "message", message)
	givenUp := h.faults >= c.cfg.MaxAttempts
	switch w := w.(type) {
	case *job:
		if givenUp {
			c.end(w, tilthv1.JobState_JOB_STATE_FAILED, "given up after repeated loss of its tuner: "+message)
			return
		}
		c.setState(w, tilthv1.JobState_JOB_STATE_QUEUED, message)
	case *batch:
		if givenUp {
			c.bury(w, class, message)
			return
		}
		if w.stage == storev1.Stage_STAGE_MEASURE && !c.artifactsThere(w) {
			c.toBuild(w)
		}
	}
	c.enqueue(w, true)
}

// bury gives a batch up and tells it as a dead letter of its job.
func (c *change) bury(b *batch, class tilthv1.ErrorClass, message string) {
	letter := &tilthv1.DeadLetter{
		BatchId: b.id, TaskIndex: b.task, Error: class, Message: message, Attempts: b.faults,
	}
	b.job.meta.DeadLetters = append(b.job.meta.DeadLetters, letter)
	e := c.event(b.job)
	e.Event = &tilthv1.JobEvent_DeadLetter{DeadLetter: letter}
	c.write.AppendEvent(b.job.id, e)
	c.closeBatch(b)
	c.metrics.deadLetters.WithLabelValues(errorName(class)).Inc()
	c.log.Error("batch given up", "batch", b.id, "class", class.String(), "message", message)
}
