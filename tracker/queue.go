package tracker

import (
	"container/list"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// class is what an agent must offer to be given work: its kind, and a tuner, toolchain or device class.
type class struct {
	kind tilthv1.AgentKind
	name string
}

// work is what is leased: a job to a tuner, a batch to a builder or a runner.
type work interface {
	subject() string
	owner() *job
	class() class
	held() *hold
}

// hold is the part that all work has in common.
type hold struct {
	// The lease in force; nil while queued.
	lease *lease
	// Number of the last lease granted.
	attempt uint32
	// Failed attempts that count.
	faults uint32
}

// queue is the work of one class that waits, and the agents that wait for some. Jobs take turns; within a job it is first
// in, first out.
type queue struct {
	jobs    []*job // in the order of their turns
	items   map[*job][]work
	length  int
	waiters *list.List // of *waiter, longest waiting first
}

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

func (t *Tracker) queue(c class) *queue {
	q := t.queues[c]
	if q == nil {
		q = &queue{items: map[*job][]work{}, waiters: list.New()}
		t.queues[c] = q
	}
	return q
}

// push adds work; what comes back from a lost lease goes to the front.
func (q *queue) push(w work, front bool) {
	j := w.owner()
	if len(q.items[j]) == 0 {
		q.jobs = append(q.jobs, j)
	}
	if front {
		q.items[j] = slices.Insert(q.items[j], 0, w)
	} else {
		q.items[j] = append(q.items[j], w)
	}
	q.length++
}

// pop takes the next work; nil when there is none.
func (q *queue) pop() work {
	if len(q.jobs) == 0 {
		return nil
	}
	j := q.jobs[0]
	q.jobs = q.jobs[1:]
	items := q.items[j]
	w := items[0]
	items[0] = nil
	if items = items[1:]; len(items) > 0 {
		q.items[j] = items
		q.jobs = append(q.jobs, j)
	} else {
		delete(q.items, j)
	}
	q.length--
	return w
}

// removeJob drops all work of a job.
func (q *queue) removeJob(j *job) {
	if n := len(q.items[j]); n > 0 {
		q.length -= n
		delete(q.items, j)
		q.jobs = slices.DeleteFunc(q.jobs, func(other *job) bool { return other == j })
	}
}

// enqueue makes work wait for an agent.
func (c *change) enqueue(w work, front bool) {
	c.queue(w.class()).push(w, front)
	c.dirty[w.class()] = struct{}{}
}

// dispatch gives waiting work to waiting agents. The caller holds the lock.
func (t *Tracker) dispatch(cl class) {
	q := t.queue(cl)
	for q.length > 0 && q.waiters.Len() > 0 {
		w := q.waiters.Front().Value.(*waiter)
		w.leave()
		w.response, w.pending = t.grant(w.agent, q.pop())
		close(w.granted)
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

// waitIn enters the waiter in the queues of all classes.
func (w *waiter) waitIn(t *Tracker, classes []class) {
	for _, c := range classes {
		q := t.queue(c)
		if w.places[q] == nil {
			w.places[q] = q.waiters.PushBack(w)
		}
	}
	w.agent.waiters[w] = struct{}{}
}
