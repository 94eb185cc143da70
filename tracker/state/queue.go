package state

import (
	"cmp"
	"container/list"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/fairqueue"
)

// class is what an agent must offer to be given work: its kind, and a tuner, toolchain or device class.
type class struct {
	kind tilthv1.AgentKind
	name string
	// runs is set for packages to be run, which not every runner can do, and device for those that only the agent of
	// that name may run. They wait in queues of their own, so that nobody passes over work that is not for them.
	runs   bool
	device string
	// reads is set for models to be read, which not every tuner can do.
	reads bool
}

func (c class) compare(other class) int {
	return cmp.Or(cmp.Compare(c.kind, other.kind), cmp.Compare(c.name, other.name), cmp.Compare(c.device, other.device),
		falseFirst(c.runs, other.runs), falseFirst(c.reads, other.reads))
}

// falseFirst orders two values.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// work is what is leased: a job to a tuner, a batch to a builder or a runner.
type work interface {
	subject() string
	parent() *job
	class() class
	held() *hold
	// size is the number of candidates; 1 for a job.
	size() int
}

// hold is the part that all work has in common.
type hold struct {
	// The lease in force; nil while queued.
	lease *lease
	// Number of the last lease granted.
	attempt uint32
	// Failed attempts that count, and all that failed.
	faults, failures uint32
	// The agents on which they failed, by name. Others go first until then, by Clock.
	failedBy  []string
	elsewhere time.Time
	// Its place among those that wait to be tried again; nil while it does not.
	retry *retry
	// When it was queued last, by Clock, to tell how long it waited.
	queued time.Time
}

// queue is the work of one class that waits, and the agents that wait for some. Owners share it by weight, and their
// jobs by priority; within a job it is first in, first out.
type queue struct {
	class   class
	work    *fairqueue.Queue[work]
	waiters *list.List // of *Waiter, longest waiting first
	// Agents that can be given its work, those that rest included.
	offering map[*agent]struct{}
	// What a candidate costs, in seconds: the moving average, by which the next is estimated.
	cost float64
}

func (m *Machine) queue(c class) *queue {
	q := m.queues[c]
	if q == nil {
		q = &queue{class: c, work: fairqueue.New[work](), waiters: list.New(), offering: map[*agent]struct{}{}}
		m.queues[c] = q
	}
	return q
}

// forgetQueue drops a queue that nobody needs: names of classes are anybody's to invent.
func (m *Machine) forgetQueue(c class) {
	if q := m.queues[c]; q != nil && q.work.Jobs() == 0 && q.waiters.Len() == 0 && len(q.offering) == 0 {
		delete(m.queues, c)
	}
}

// flow says who pays for work.
func (m *Machine) flow(w work) fairqueue.Flow {
	j := w.parent()
	return fairqueue.Flow{
		Owner: j.spec.GetOwner(), OwnerWeight: m.cfg.Shares.Of(j.spec.GetOwner()).Weight,
		Job: j.id, JobWeight: float64(priority(j.spec)),
	}
}

// push has work wait for an agent; a paused job's waits until it is resumed.
func (m *Machine) push(w work, front bool) {
	if !w.parent().paused() {
		w.held().queued = m.cfg.Clock()
		m.queue(w.class()).work.Push(m.flow(w), w, front)
	}
}

// enqueue has work wait for an agent, and gives it to one that waits.
func (c *Change) enqueue(w work, front bool) {
	c.push(w, front)
	c.dirty[w.class()] = struct{}{}
}

// withdraw takes all work of a job that waits out of the queues.
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

// leaveQueues does so for good.
func (c *Change) leaveQueues(j *job) {
	c.withdraw(j)
	for _, class := range j.classes() {
		if q := c.queues[class]; q != nil {
			q.work.Forget(j.spec.GetOwner(), j.id)
			c.forgetQueue(class)
		}
	}
}
