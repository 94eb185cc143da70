package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// lease is work assigned to an agent until a deadline.
type lease struct {
	token    *tilthv1.LeaseToken
	agent    *agent
	work     work
	deadline time.Time
	// seen is when it was granted, recovered or last listed in a heartbeat; listed is set once a heartbeat listed it.
	seen   time.Time
	listed bool
	// missed counts the heartbeats that omitted it since.
	missed int
	due    *deadline
	cost
}

func (l *lease) proto() *tilthv1.LeaseToken {
	if l == nil {
		return nil
	}
	return l.token
}

// grant leases work to an agent. to is the pending request that it answers, or nil.
func (m *Machine) grant(a *agent, to *Waiter, q *queue, w work, charge *policy.Charge) *Effects {
	effects, _ := m.Apply(func(c *Change) error {
		var response *tilthv1.LeaseWorkResponse
		h := w.held()
		h.attempt++
		token := &tilthv1.LeaseToken{Session: a.session, Subject: w.subject(), Attempt: h.attempt, Life: c.generation}
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
		if c.cfg.Shards > 1 {
			response.Weight = c.waitingWeight(q, w)
		}
		c.effects.Grant = &Grant{To: to, Response: response}
		c.addFact(Granted{a.spec.GetKind(), now.Sub(h.queued)})
		return nil
	})
	return effects
}

func (c *Change) leaseJob(j *job) *tilthv1.LeaseWorkResponse {
	if j.reads() {
		return c.leaseModel(j)
	}
	if j.meta.GetStartedAt() == nil {
		j.meta.StartedAt = c.now()
	}
	if !j.runs() {
		j.counted = c.cfg.Clock() // a tuner holds the job
		j.meta.TimeSpent = durationpb.New(j.spent)
	}
	reason := ""
	if j.makesPackage() {
		reason = j.lease.agent.name() + " compiles the model"
	}
	c.setState(j, tilthv1.JobState_JOB_STATE_RUNNING, reason)
	if j.runs() {
		return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Run{Run: &tilthv1.RunWork{Job: j.whole()}}}
	}
	return &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Search{Search: c.searchWork(j)}}
}

func (c *Change) leaseBatch(b *batch) *tilthv1.LeaseWorkResponse {
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

// lookUp returns the work of a lease in force, or nil.
func (m *Machine) lookUp(token *tilthv1.LeaseToken) work {
	l := m.leases[token.GetSubject()]
	if l == nil || !proto.Equal(l.token, token) {
		return nil
	}
	return l.work
}

// release ends the lease on w, if any.
func (c *Change) release(w work) {
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
	if !h.lease.granted.IsZero() { // unknown for leases granted before a restart
		c.addFact(Ended{a.spec.GetKind(), c.cfg.Clock().Sub(h.lease.granted)})
	}
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

// Stale returns the error for a call whose lease is no longer held.
func Stale(call string, token *tilthv1.LeaseToken) error {
	return RefuseOf(StaleLease, call, "lease of %q, attempt %d, is no longer held: drop the work", token.GetSubject(), token.GetAttempt())
}

// ReturnLease returns a lease without blame. It is a no-op if the lease is no longer held.
func (c *Change) ReturnLease(token *tilthv1.LeaseToken, why string) {
	if w := c.lookUp(token); w != nil {
		c.giveBack(w, why)
	}
}

// EndTurns takes jobs from tuners that have held them for a turn while other jobs wait. A search may take days, but
// its state is in the job's events, so any tuner can continue it.
func (c *Change) EndTurns() {
	for _, class := range slices.SortedFunc(maps.Keys(c.queues), class.compare) {
		if class.kind == tilthv1.AgentKind_AGENT_KIND_TUNER && !class.reads && c.queues[class].work.Len() > 0 {
			c.endTurnsOf(c.queues[class])
		}
	}
	c.endTurnElsewhere()
}

// endTurnsOf frees at most as many tuners as jobs are waiting, longest held first.
func (c *Change) endTurnsOf(q *queue) {
	now := c.cfg.Clock()
	waiting := q.work.Len()
	held := q.held()
	for _, l := range held {
		l.atLeast(now.Sub(l.granted).Seconds())
	}
	for _, l := range held {
		if waiting == 0 || now.Sub(l.granted) < c.cfg.SearchTurn {
			return
		}
		if q.work.Ahead(c.flow(l.work)) {
			c.giveUpTurn(l.work.(*job))
			waiting--
		}
	}
}

// held returns the leases of the class, oldest first.
func (q *queue) held() (out []*lease) {
	for a := range q.offering {
		for _, l := range a.leases {
			if l.queue == q {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b *lease) int {
		return cmp.Or(a.granted.Compare(b.granted), cmp.Compare(a.work.subject(), b.work.subject()))
	})
	return out
}

// giveUpTurn requeues a job behind those waiting. Its tuner learns of it with the next heartbeat.
func (c *Change) giveUpTurn(j *job) {
	held := c.cfg.Clock().Sub(j.lease.granted).Round(time.Second)
	c.release(j)
	c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, "others wait for a tuner, which it had for "+held.String())
	c.enqueue(j, false)
}
