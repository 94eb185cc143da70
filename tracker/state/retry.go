package state

import (
	"container/heap"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// retry is work scheduled for another attempt.
type retry struct {
	work  work
	due   time.Time
	place int // in the heap
}

// retries is a heap ordered by due time.
type retries = policy.Heap[*retry]

// retryLater queues failed work after a delay that doubles with each failure. Without it, the attempts would be used
// up before a transient problem could pass.
func (c *Change) retryLater(w work) {
	h := w.held()
	wait := time.Duration(0)
	if c.cfg.FirstRetry > 0 {
		wait = policy.Backoff(c.cfg.FirstRetry, c.cfg.MaxRetry, int(h.failures)-1)
	}
	due := c.cfg.Clock().Add(wait)
	h.elsewhere = due.Add(c.cfg.LeaseTimeout)
	if wait == 0 {
		c.enqueue(w, true)
		return
	}
	h.retry = &retry{work: w, due: due}
	heap.Push(&c.retries, h.retry)
}

// cancelRetry cancels a scheduled retry.
func (c *Change) cancelRetry(w work) {
	if h := w.held(); h.retry != nil {
		heap.Remove(&c.retries, h.retry.place)
		h.retry = nil
	}
}

// retryDue queues the work whose retry is due.
func (m *Machine) retryDue() {
	now := m.cfg.Clock()
	for m.retries.Len() > 0 && !now.Before(m.retries.All[0].due) {
		w := heap.Pop(&m.retries).(*retry).work
		w.held().retry = nil
		m.push(w, true)
		m.dispatch(w.class())
	}
}

// maxOthersAsked bounds how many agents, in random order, are checked for willingness to take failed work. If none of
// that many is, the work does not wait for the rest.
const maxOthersAsked = 64

// betterElsewhere reports whether work that failed on the agent should be left to another: one is available, and the
// work has not waited too long for it.
func (*Machine) betterElsewhere(q *queue, w work, a *agent, now time.Time) bool {
	h := w.held()
	if !slices.Contains(h.failedBy, a.name()) || now.After(h.elsewhere) {
		return false
	}
	asked := 0
	for other := range q.offering {
		if asked++; asked > maxOthersAsked {
			return false
		}
		if other.takesWork(now) && !other.failures.InCooldownFor(madeFrom(w), now) && !slices.Contains(h.failedBy, other.name()) {
			return true
		}
	}
	return false
}
