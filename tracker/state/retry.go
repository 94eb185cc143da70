package state

import (
	"container/heap"
	"slices"
	"time"

	waits "github.com/tilth-dev/tilth/tracker/policy/retry"
)

// retry is work that waits to be tried again.
type retry struct {
	work  work
	due   time.Time
	place int // in the heap
}

// retries are in the order in which they are due.
type retries []*retry

// retryLater queues work that failed, after a wait that doubles with each failure: what fails at once would else use
// up its attempts before whatever is wrong can pass.
func (c *Change) retryLater(w work) {
	h := w.held()
	wait := time.Duration(0)
	if c.cfg.FirstRetry > 0 {
		wait = waits.Backoff(c.cfg.FirstRetry, c.cfg.MaxRetry, int(h.failures)-1)
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

// cancelRetry has work wait no more to be tried again.
func (c *Change) cancelRetry(w work) {
	if h := w.held(); h.retry != nil {
		heap.Remove(&c.retries, h.retry.place)
		h.retry = nil
	}
}

// retryDue queues what has waited long enough.
func (m *Machine) retryDue() {
	now := m.cfg.Clock()
	for len(m.retries) > 0 && !now.Before(m.retries[0].due) {
		w := heap.Pop(&m.retries).(*retry).work
		w.held().retry = nil
		m.push(w, true)
		m.dispatch(w.class())
	}
}

// mostOthersAsked bounds the agents that are asked whether they would take work which failed on another, at random: of
// so many hardly all are out of order, and if they are the work does not wait for the rest.
const mostOthersAsked = 64

// betterElsewhere says whether work that failed on an agent is left to another: there is one, and it has not waited
// for it too long.
func (*Machine) betterElsewhere(q *queue, w work, a *agent, now time.Time) bool {
	h := w.held()
	if !slices.Contains(h.failedBy, a.name()) || now.After(h.elsewhere) {
		return false
	}
	asked := 0
	for other := range q.offering {
		if asked++; asked > mostOthersAsked {
			return false
		}
		if other.takesWork(now) && !other.rest.RestsFrom(madeFrom(w), now) && !slices.Contains(h.failedBy, other.name()) {
			return true
		}
	}
	return false
}

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].due.Before(r[j].due) }

func (r retries) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].place, r[j].place = i, j
}

// Push implements heap.Interface.
func (r *retries) Push(x any) {
	item := x.(*retry)
	item.place = len(*r)
	*r = append(*r, item)
}

// Pop implements heap.Interface.
func (r *retries) Pop() any {
	last := len(*r) - 1
	item := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return item
}
