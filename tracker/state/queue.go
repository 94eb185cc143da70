package state

import (
	"cmp"
	"container/list"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

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
