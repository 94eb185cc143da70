package state

import (
	"container/list"
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/fairqueue"
	"github.com/tilth-dev/tilth/tracker/refusal"
)

// Waiter is a request of an agent for work that waits.
type Waiter struct {
	agent  *agent
	name   string // by which it may be ended; empty = it has none
	places map[*queue]*list.Element
}

// Session is that of the agent that waits.
func (w *Waiter) Session() string { return w.agent.session }

// Lease leases work that waits already to the agent of a session; nil when there is none for it.
func (m *Machine) Lease(session string) (*Effects, error) {
	a, err := m.live(session)
	if err != nil {
		return nil, err
	}
	m.retryDue()
	return m.grantNow(a), nil
}

// Wait has a request of an agent for work wait, until the effects of a change have a grant for it or say that it is
// void, or it gives up.
func (m *Machine) Wait(session, name string) (*Waiter, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, refusal.Session(session)
	}
	if err := m.roomForWait(a); err != nil {
		return nil, err
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

// FindWait is the request of that name by which the agent of a session waits; nil when there is none.
func (m *Machine) FindWait(session, name string) (*Waiter, error) {
	a := m.sessions[session]
	if a == nil {
		return nil, refusal.Session(session)
	}
	for w := range a.waiters {
		if name != "" && w.name == name {
			return w, nil
		}
	}
	return nil, nil
}

// GiveUp has a request wait no more.
func (m *Machine) GiveUp(w *Waiter) { w.leave() }

// ServeWaiters gives work to agents that wait for it which only time kept from them: retries that are due, rests that
// are over, and what was kept for another agent.
func (m *Machine) ServeWaiters() {
	m.retryDue()
	for _, class := range slices.SortedFunc(maps.Keys(m.queues), class.compare) {
		m.dispatch(class)
	}
}

// grantNow leases work to an agent; its classes take turns, so that none of them waits for ever behind another that
// always has work.
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

// next takes the work from a queue whose turn it is and that the agent may have; nil when there is none. left says
// that there is some which others may have.
func (m *Machine) next(q *queue, a *agent) (w work, charge *fairqueue.Charge, left bool) {
	now := m.cfg.Clock()
	allowed := fairqueue.Filter[work]{Item: func(w work) bool {
		is := !a.rest.RestsFrom(madeFrom(w), now) && !m.betterElsewhere(q, w, a, now) && m.readable(w)
		left = left || !is
		return is
	}}
	if q.class.kind == tilthv1.AgentKind_AGENT_KIND_BUILDER {
		allowed.Owner = m.mayBuild
	}
	w, charge, _ = q.work.Pop(allowed)
	return w, charge, left
}

// dispatch gives waiting work to waiting agents.
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
			return // nor would anybody else get something
		}
		if item == nil {
			continue
		}
		w.leave()
		m.grant(w.agent, w, q, item, charge)
	}
}

// leave takes the waiter out of all queues.
func (w *Waiter) leave() {
	for q, place := range w.places {
		q.waiters.Remove(place)
	}
	w.places = nil
	delete(w.agent.waiters, w)
}
