package tracker

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire/names"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy/fairqueue"
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
	// Where its deadline is among the tracker's, while it is there.
	place int
	cost
}

func (l *lease) proto() *tilthv1.LeaseToken {
	if l == nil {
		return nil
	}
	return l.token
}

// grant leases work to an agent. The caller holds the lock, and waits for the store before it tells the agent.
func (t *Tracker) grant(a *agent, q *queue, w work, charge *fairqueue.Charge) (*tilthv1.LeaseWorkResponse, *records.Pending) {
	var response *tilthv1.LeaseWorkResponse
	pending, _ := t.apply(func(c *change) error {
		h := w.held()
		h.attempt++
		token := &tilthv1.LeaseToken{Session: a.session, Subject: w.subject(), Attempt: h.attempt, Life: c.db.Life()}
		now := c.cfg.Clock()
		h.lease = &lease{
			token: token, agent: a, work: w, deadline: now.Add(c.cfg.LeaseTimeout), seen: now,
			cost: q.begin(now, charge, w.size()),
		}
		c.leases[w.subject()] = h.lease
		a.leases[w.subject()] = h.lease
		c.deadlines.lease(h.lease)
		switch w := w.(type) {
		case *job:
			response = c.leaseJob(w)
		case *batch:
			response = c.leaseBatch(w)
		}
		response.Lease = token
		c.metrics.granted.WithLabelValues(names.AgentKind(a.spec.GetKind())).Inc()
		c.metrics.waited(a.spec.GetKind(), h, now)
		return nil
	})
	return response, pending
}

func (c *change) leaseJob(j *job) *tilthv1.LeaseWorkResponse {
	if j.meta.GetStartedAt() == nil {
		j.meta.StartedAt = c.now()
	}
	if !j.runs() {
		c.beginTime(j)
	}
	c.setState(j, tilthv1.JobState_JOB_STATE_RUNNING, "")
	if j.runs() {
		return c.leaseRun(j)
	}
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Search{Search: c.searchWork(j)}}
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
		BatchId: b.id, JobId: b.job.id, Target: target, Task: b.spec(), Candidates: b.pendingNames(), Artifacts: b.artifacts,
		BestSeconds: b.job.progress[b.task].GetBestSeconds(), Best: bestOf(b.job.progress[b.task]), Mode: b.mode,
		DriftLimit: c.cfg.Drift.Remeasure, BuiltBy: b.builtBy,
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
	if j, ok := w.(*job); ok {
		c.countTime(j, newSupplies())
		j.counted, j.running = time.Time{}, false
	}
	delete(c.leases, w.subject())
	c.deadlines.drop(h.lease)
	a := h.lease.agent
	delete(a.leases, w.subject())
	c.metrics.held(h.lease, c.cfg.Clock())
	h.lease.settle(c.cfg.Clock())
	h.lease = nil
	if a.device != nil {
		c.drained(a.device)
	}
	switch w := w.(type) {
	case *job:
		c.touch(w)
	case *batch:
		c.move(w)
	}
}
