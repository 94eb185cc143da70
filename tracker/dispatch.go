package tracker

import (
	"container/list"
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy/fairqueue"
)

// waiter is a LeaseWork call that waits.
type waiter struct {
	agent  *agent
	places map[*queue]*list.Element
	// granted is closed once response, or err, is set.
	granted  chan struct{}
	response *tilthv1.LeaseWorkResponse
	pending  *records.Pending
	err      error
}

// grantNow leases work that waits already, if there is any for the agent. Its classes take turns, so that none of them
// waits for ever behind another that always has work.
func (t *Tracker) grantNow(a *agent) (*tilthv1.LeaseWorkResponse, *records.Pending) {
	t.retryDue()
	if !a.takesWork(t.cfg.Clock()) {
		return nil, nil
	}
	for i := range a.offers {
		k := (a.turn + i) % len(a.offers)
		q := t.queues[a.offers[k]]
		if q == nil {
			continue
		}
		if w, charge, _ := t.next(q, a); w != nil {
			a.turn = k + 1
			return t.grant(a, q, w, charge)
		}
	}
	return nil, nil
}

// next takes the work from a queue whose turn it is and that the agent may have; nil when there is none. left says
// that there is some which others may have.
func (t *Tracker) next(q *queue, a *agent) (w work, charge *fairqueue.Charge, left bool) {
	now := t.cfg.Clock()
	allowed := fairqueue.Filter[work]{Item: func(w work) bool {
		is := !a.rest.RestsFrom(w.parent().id, now) && !t.betterElsewhere(q, w, a, now)
		left = left || !is
		return is
	}}
	if q.class.kind == tilthv1.AgentKind_AGENT_KIND_BUILDER {
		allowed.Owner = t.mayBuild
	}
	w, charge, _ = q.work.Pop(allowed)
	return w, charge, left
}

// dispatch gives waiting work to waiting agents. The caller holds the lock.
func (t *Tracker) dispatch(cl class) {
	q := t.queues[cl]
	if q == nil {
		return
	}
	for place := q.waiters.Front(); place != nil && q.work.Len() > 0; {
		w := place.Value.(*waiter)
		place = place.Next()
		if !w.agent.takesWork(t.cfg.Clock()) {
			continue
		}
		item, charge, left := t.next(q, w.agent)
		if item == nil && !left {
			return // nor would anybody else get something
		}
		if item == nil {
			continue
		}
		w.leave()
		w.response, w.pending = t.grant(w.agent, q, item, charge)
		close(w.granted)
	}
}

// serveWaiters gives work to agents that wait for it which only time kept from them: retries that are due, rests that
// are over, and what was kept for another agent.
func (t *Tracker) serveWaiters() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retryDue()
	for _, class := range slices.SortedFunc(maps.Keys(t.queues), class.compare) {
		t.dispatch(class)
	}
}

// leave takes the waiter out of all queues.
func (w *waiter) leave() {
	for q, place := range w.places {
		q.waiters.Remove(place)
	}
	w.places = nil
	delete(w.agent.waiters, w)
}

// waitIn enters the waiter in the queues of all that its agent offers.
func (w *waiter) waitIn(t *Tracker) {
	for _, c := range w.agent.offers {
		q := t.queue(c)
		if w.places[q] == nil {
			w.places[q] = q.waiters.PushBack(w)
		}
	}
	w.agent.waiters[w] = struct{}{}
}
