package state

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Waiter is a pending request of an agent for work.
type Waiter struct {
	agent  *agent
	name   string // client-chosen, to end the wait early; may be empty
	places map[*queue]*list.Element
}

// Session returns the session of the waiting agent.
func (w *Waiter) Session() string { return w.agent.session }

// Lease leases queued work to the agent of a session. It returns nil if nothing suitable is queued.
func (m *Machine) Lease(session string) (*Effects, error) {
	a, err := m.live(session)
	if err != nil {
		return nil, err
	}
	m.retryDue()
	return m.grantNow(a), nil
}

// Wait registers a pending request for work. The effects of a later change either grant it a lease or void it, unless
// the request gives up first.
func (m *Machine) Wait(session, name string) (*Waiter, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, RefuseSession(session)
	}
	if len(a.waiters) >= m.cfg.Limits.AgentWaits {
		return nil, overloaded("waits", "agent %s waits for work %d times: have fewer slots", a.name(), len(a.waiters))
	}
	w := &Waiter{agent: a, name: name, places: map[*queue]*list.Element{}}
	for _, c := range a.offers {
		q := m.queue(c)
		if w.places[q] == nil {
			w.places[q] = q.waiters.PushBack(w)
		}
	}
	a.waiters[w] = struct{}{}
	return w, nil
}

// FindWait returns the agent's pending request with the given name, or nil.
func (m *Machine) FindWait(session, name string) (*Waiter, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, RefuseSession(session)
	}
	for w := range a.waiters {
		if name != "" && w.name == name {
			return w, nil
		}
	}
	return nil, nil
}

// CancelWait removes a pending request.
func (m *Machine) CancelWait(w *Waiter) { w.leave() }

// ServeWaiters dispatches work that was held back by time alone: retries that are due, cooldowns that are over, and
// work reserved for another agent.
func (m *Machine) ServeWaiters() {
	m.retryDue()
	for _, class := range slices.SortedFunc(maps.Keys(m.queues), class.compare) {
		m.dispatch(class)
	}
}

// grantNow leases work to an agent. The agent's classes take turns, so that a busy class cannot starve the others.
func (m *Machine) grantNow(a *agent) *Effects {
	if !a.takesWork(m.cfg.Clock()) {
		return nil
	}
	for i := range a.offers {
		k := (a.turn + i) % len(a.offers)
		q := m.queues[a.offers[k]]
		if q == nil {
			continue
		}
		if w, charge, _ := m.next(q, a); w != nil {
			a.turn = k + 1
			return m.grant(a, nil, q, w, charge)
		}
	}
	return nil
}

// next pops the next item that the agent may have, or nil. left reports whether other agents might take what remains.
func (m *Machine) next(q *queue, a *agent) (w work, charge *policy.Charge, left bool) {
	now := m.cfg.Clock()
	allowed := policy.Filter[work]{Item: func(w work) bool {
		is := !a.failures.InCooldownFor(madeFrom(w), now) && !m.betterElsewhere(q, w, a, now) && m.readable(w)
		left = left || !is
		return is
	}}
	if q.class.kind == tilthv1.AgentKind_AGENT_KIND_BUILDER {
		allowed.Owner = m.mayBuild
	}
	w, charge, _ = q.work.Pop(allowed)
	return w, charge, left
}

// dispatch leases queued work of a class to waiting agents.
func (m *Machine) dispatch(cl class) {
	q := m.queues[cl]
	if q == nil {
		return
	}
	for place := q.waiters.Front(); place != nil && q.work.Len() > 0; {
		w := place.Value.(*Waiter)
		place = place.Next()
		if !w.agent.takesWork(m.cfg.Clock()) {
			continue
		}
		item, charge, left := m.next(q, w.agent)
		if item == nil && !left {
			return // no other agent could take it either
		}
		if item == nil {
			continue
		}
		w.leave()
		m.grant(w.agent, w, q, item, charge)
	}
}

// leave removes the waiter from all queues.
func (w *Waiter) leave() {
	for q, place := range w.places {
		q.waiters.Remove(place)
	}
	w.places = nil
	delete(w.agent.waiters, w)
}

// class is what an agent must offer to be given work: its kind, and a tuner, toolchain or device class.
type class struct {
	kind tilthv1.AgentKind
	name string
	// runs marks packages to run or make, which not every runner or builder supports. device restricts the run to one
	// agent. Both get queues of their own, so that no agent has to skip work it cannot do.
	runs   bool
	device string
	// reads marks models to read, which not every tuner supports.
	reads bool
}

func (c class) compare(other class) int {
	return cmp.Or(cmp.Compare(c.kind, other.kind), cmp.Compare(c.name, other.name), cmp.Compare(c.device, other.device),
		falseFirst(c.runs, other.runs), falseFirst(c.reads, other.reads))
}

// falseFirst orders false before true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// work is a unit that can be leased: a job to a tuner, a batch to a builder or a runner.
type work interface {
	subject() string
	parent() *job
	class() class
	held() *hold
	// size returns the number of candidates; 1 for a job.
	size() int
}

// hold is the state common to all work.
type hold struct {
	// lease is the lease in force; nil while queued.
	lease *lease
	// attempt is the number of the last lease granted.
	attempt uint32
	// faults counts the failed attempts charged to the work, failures all failed attempts.
	faults, failures uint32
	// failedBy names the agents that failed it. Other agents have precedence until elsewhere, by Clock.
	failedBy  []string
	elsewhere time.Time
	// retry is the scheduled retry, or nil.
	retry *retry
	// queued is when it was last queued, by Clock.
	queued time.Time
}

// queue holds the waiting work of one class and the agents that wait for it. Owners share it by weight, and their jobs
// by priority; work of one job is first in, first out.
type queue struct {
	class   class
	work    *policy.Queue[work]
	waiters *list.List // of *Waiter, longest waiting first
	// offering holds the agents that accept this class, including agents in a cooldown.
	offering map[*agent]struct{}
	// cost is the moving average of a candidate's seconds, from which the next is estimated.
	cost float64
}

func (m *Machine) queue(c class) *queue {
	q := m.queues[c]
	if q == nil {
		q = &queue{class: c, work: policy.NewQueue[work](m.cfg.SearchTurn.Seconds()), waiters: list.New(), offering: map[*agent]struct{}{}}
		m.queues[c] = q
	}
	return q
}

// forgetQueue deletes an unused queue. Agents and clients choose class names freely, so unused queues must not
// accumulate.
func (m *Machine) forgetQueue(c class) {
	if q := m.queues[c]; q != nil && q.work.Jobs() == 0 && q.waiters.Len() == 0 && len(q.offering) == 0 {
		delete(m.queues, c)
	}
}

// flow returns the owner and job that pay for the work.
func (m *Machine) flow(w work) policy.Flow {
	j := w.parent()
	return policy.Flow{
		Owner: j.spec.GetOwner(), OwnerWeight: m.cfg.Shares.Of(j.spec.GetOwner()).Weight,
		Job: j.id, JobWeight: float64(cmp.Or(j.spec.GetPriority(), wire.DefaultPriority)),
	}
}

// push queues work. Work of a paused job stays out of the queues until the job resumes.
func (m *Machine) push(w work, front bool) {
	if !w.parent().paused() {
		w.held().queued = m.cfg.Clock()
		m.queue(w.class()).work.Push(m.flow(w), w, front)
	}
}

// enqueue queues work and schedules dispatching for its class.
func (c *Change) enqueue(w work, front bool) {
	c.push(w, front)
	c.dirty[w.class()] = struct{}{}
}

// withdraw takes all work of a job out of the queues and cancels its retries.
func (c *Change) withdraw(j *job) {
	for _, class := range j.classes() {
		if q := c.queues[class]; q != nil {
			q.work.Remove(j.spec.GetOwner(), j.id)
		}
	}
	c.cancelRetry(j)
	for _, b := range j.batches {
		c.cancelRetry(b)
	}
}

// leaveQueues withdraws a job for good.
func (c *Change) leaveQueues(j *job) {
	c.withdraw(j)
	for _, class := range j.classes() {
		if q := c.queues[class]; q != nil {
			q.work.Forget(j.spec.GetOwner(), j.id)
			c.forgetQueue(class)
		}
	}
}
