package state

import (
	"container/list"
	"maps"
	"slices"

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
