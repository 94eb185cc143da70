package state

import (
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// giveBack requeues work without counting a failure.
func (c *Change) giveBack(w work, why string) {
	name := w.held().lease.agent.name()
	c.release(w)
	if j, ok := w.(*job); ok {
		c.setState(j, j.waiting(), name+" "+why)
	}
	c.enqueue(w, true)
}

// failAttempt handles a failed attempt. The work is retried later, on another agent if possible, and given up after
// too many attempts. If everything fails on the agent, the agent is to blame: it enters a cooldown, and the failure
// counts only towards the bound on all attempts.
func (c *Change) failAttempt(w work, class tilthv1.ErrorClass, message string) {
	h, a := w.held(), w.held().lease.agent
	message = records.Cut(message, records.MaxReasonBytes)
	a.failed++
	h.failures++
	if c.strike(a, w) {
		c.beginCooldown(a, w, message)
	} else {
		h.faults++
	}
	if !slices.Contains(h.failedBy, a.name()) {
		h.failedBy = append(h.failedBy, a.name())
	}
	c.release(w)
	c.noteFailure(w.parent(), class, message, a.name())
	c.log.Warn("attempt failed", "subject", w.subject(), "attempt", h.attempt, "class", class.String(), "message", message)
	givenUp := h.faults >= c.cfg.MaxAttempts || h.failures >= blamelessAttempts*c.cfg.MaxAttempts
	switch w := w.(type) {
	case *job:
		if digest := c.lackedBy(w); digest != "" {
			c.endDamaged(w, digest)
			return
		}
		if givenUp {
			c.end(w, tilthv1.JobState_JOB_STATE_FAILED, "given up after repeated loss of its "+wire.AgentKind(a.spec.GetKind())+": "+message)
			return
		}
		c.setState(w, w.waiting(), message)
	case *batch:
		if c.addFruitless(w) {
			c.end(w.job, tilthv1.JobState_JOB_STATE_FAILED, fmt.Sprintf("given up after %d failures in a row, the last on %s: %s",
				w.job.fruitless[w.stage].failures, a.name(), message))
			return
		}
		if givenUp {
			c.addDeadLetter(w, class, message)
			return
		}
		if w.stage == storev1.Stage_STAGE_MEASURE && !c.artifactsThere(w) {
			c.toBuild(w)
		} else if class == tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA && h.failures >= doubtful && c.othersBuild(w) {
			c.buildElsewhere(w)
		}
	}
	c.retryLater(w)
}

// streak counts failures since the last success.
type streak struct {
	failures uint32
	since    time.Time // by Clock
}

// addFruitless counts a failed attempt at a batch. It reports whether the job's attempts in that stage have failed so
// often in a row, and for so long, that the farm is at fault.
func (c *Change) addFruitless(b *batch) (giveUp bool) {
	s := b.job.fruitless[b.stage]
	if s.failures == 0 {
		s.since = c.cfg.Clock()
	}
	s.failures++
	if b.job.fruitless == nil {
		b.job.fruitless = map[storev1.Stage]streak{}
	}
	b.job.fruitless[b.stage] = s
	return s.failures >= fruitlessAttempts*c.cfg.MaxAttempts && c.cfg.Clock().Sub(s.since) >= c.cfg.Grace
}

// fruitlessAttempts bounds the failures in a row of a job's batches in one stage, as a multiple of MaxAttempts, once
// they have lasted for the grace period.
const fruitlessAttempts = 2

// noteFailure keeps the last failure of each class with the job.
func (c *Change) noteFailure(j *job, class tilthv1.ErrorClass, message, agent string) {
	f := &tilthv1.JobFailure{Error: class, Message: clip(message, maxMessageBytes), Agent: agent, At: c.now(), Count: 1}
	for _, old := range j.meta.GetFailures() {
		if old.GetError() == class {
			f.Count += old.GetCount()
		}
	}
	j.meta.Failures = append(slices.DeleteFunc(j.meta.GetFailures(), func(old *tilthv1.JobFailure) bool { return old.GetError() == class }), f)
	c.touch(j)
}

// lastFailure formats the last failure of a job as a suffix for messages, or returns "".
func (j *job) lastFailure() string {
	all := j.meta.GetFailures()
	if len(all) == 0 {
		return ""
	}
	f := all[len(all)-1]
	return fmt.Sprintf("; the last failure, on %s: %s", f.GetAgent(), clip(f.GetMessage(), maxQuoted))
}

// doubtful is the number of failures after which another builder rebuilds a batch: the build may be at fault, not the
// devices.
const doubtful = 2

// blamelessAttempts bounds all attempts, as a multiple of MaxAttempts. It ends work on a farm whose devices are all
// broken.
const blamelessAttempts = 4

// succeed ends the lease of a batch after an accepted report.
func (c *Change) succeed(b *batch) {
	l := b.lease
	l.agent.completed++
	l.agent.failures.Reset()
	b.settle()
	delete(b.job.fruitless, b.stage)
	c.release(b)
}

// maxDeadLetters bounds the dead letters of a job. A job that reaches it fails: the farm cannot tune it.
const maxDeadLetters = 100

// addDeadLetter gives up a batch and records it as a dead letter of its job.
func (c *Change) addDeadLetter(b *batch, class tilthv1.ErrorClass, message string) {
	letter := &tilthv1.DeadLetter{
		BatchId: b.id, TaskIndex: b.task, Error: class, Message: clip(message, maxMessageBytes), Attempts: b.failures, Agents: b.failedBy,
	}
	j := b.job
	j.meta.DeadLetters = append(j.meta.DeadLetters, letter)
	c.store(j, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_DeadLetter{DeadLetter: letter}})
	c.dropBatch(b)
	delete(c.moved, b)
	b.stage = storev1.Stage_STAGE_DEAD
	c.write.CloseBatch(b.id, b.row())
	c.addFact(GaveUp(class))
	c.log.Error("batch given up", "batch", b.id, "class", class.String(), "message", message, "agents", b.failedBy)
	if len(j.meta.GetDeadLetters()) >= maxDeadLetters {
		c.end(j, tilthv1.JobState_JOB_STATE_FAILED, fmt.Sprintf("the farm gave up %d batches, the last: %s", maxDeadLetters, letter.GetMessage()))
	}
}

// DeadBatch is a dead letter with the stored row of its batch.
type DeadBatch struct {
	Letter *tilthv1.DeadLetter
	Stored *records.OpenBatch
}

// stillDead restores the batches that are still dead letters of the job.
func (c *Change) stillDead(j *job, dead []DeadBatch) (out []*batch, err error) {
	for _, d := range dead {
		if !slices.Contains(j.meta.GetDeadLetters(), d.Letter) {
			continue
		}
		b, err := c.restore(j, d.Stored)
		if err != nil {
			return nil, refuseStore(err)
		}
		out = append(out, b)
	}
	return out, nil
}

// requeueDead requeues a dead batch for building and clears its failures.
func (c *Change) requeueDead(b *batch) {
	j := b.job
	j.meta.DeadLetters = slices.DeleteFunc(j.meta.GetDeadLetters(), func(d *tilthv1.DeadLetter) bool { return d.GetBatchId() == b.id })
	b.stage, b.failedBy = storev1.Stage_STAGE_BUILD, nil
	b.faults, b.failures = 0, 0
	c.store(j, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Retried{Retried: &tilthv1.BatchRetried{
		BatchId: b.id, TaskIndex: b.task, Trials: uint32(b.open),
	}}})
	c.write.ReopenBatch(b.id)
	c.addBatch(b)
	c.move(b)
	c.enqueue(b, false)
	c.log.Info("dead letter retried", "batch", b.id)
}

// DeadLetters returns the dead letters of an open job.
func (m *Machine) DeadLetters(jobID string) []*tilthv1.DeadLetter {
	if j := m.jobs[jobID]; j != nil {
		return slices.Clone(j.meta.GetDeadLetters())
	}
	return nil
}

// RetryDead requeues those of the given batches that are still dead letters of the job, and returns their ids. ok is
// false if the job has ended.
func (c *Change) RetryDead(jobID string, dead []DeadBatch) (ids []string, ok bool, err error) {
	j := c.jobs[jobID]
	if j == nil {
		return nil, false, nil
	}
	batches, err := c.stillDead(j, dead)
	for _, b := range batches {
		c.requeueDead(b)
		ids = append(ids, b.id)
	}
	return ids, true, err
}

// strike records a failed lease of an agent and reports whether the agent, rather than the work, is to blame. Leases
// that end with the session count as one failure.
func (m *Machine) strike(a *agent, w work) (suspect bool) {
	counts := !a.gone || !a.struckOut
	a.struckOut = a.gone
	what := madeFrom(w)
	if what.Builder != "" && !m.othersBuild(w.(*batch)) {
		what.Builder = ""
	}
	return a.failures.AddFailure(what, counts)
}

// madeFrom describes the work for the cooldown record.
func madeFrom(w work) policy.Work {
	what := policy.Work{Subject: w.subject(), Job: w.parent().id, Private: w.parent().spec.GetPrivate()}
	if b, ok := w.(*batch); ok && b.stage == storev1.Stage_STAGE_MEASURE {
		what.Builder = b.builtBy
	}
	return what
}

// beginCooldown starts the cooldown of a suspect agent. A single lease afterwards shows whether it works again. The
// reason is public, so for a private job it omits the message.
func (c *Change) beginCooldown(a *agent, w work, message string) {
	if w.parent().spec.GetPrivate() {
		message = "work of a private job"
	}
	wait, begun := c.cfg.Cooldown.Begin(&a.failures, c.cfg.Clock(), c.cfg.Now(), clip(message, maxMessageBytes))
	if !begun {
		return
	}
	c.addFact(CooldownBegan)
	_, reason, _ := a.failures.Last()
	c.log.Warn("agent in cooldown", "agent", a.name(), "seconds", wait.Seconds(), "reason", reason)
}

// othersBuild reports whether another builder is available for a batch. It checks a bounded number of agents.
func (m *Machine) othersBuild(b *batch) bool {
	now := m.cfg.Clock()
	for a := range m.queues[b.buildClass()].some() {
		if a.owner() != b.builtBy && a.takesWork(now) {
			return true
		}
	}
	return false
}

// buildElsewhere requeues a batch for building, preferably by another builder.
func (c *Change) buildElsewhere(b *batch) {
	c.toBuild(b)
	for a := range c.queues[b.buildClass()].some() {
		if a.owner() == b.builtBy {
			b.failedBy = append(b.failedBy, a.name())
		}
	}
	slices.Sort(b.failedBy)
}

// some yields a bounded number of agents that accept the class; none if q is nil.
func (q *queue) some() iter.Seq[*agent] {
	return func(yield func(*agent) bool) {
		if q == nil {
			return
		}
		asked := 0
		for a := range q.offering {
			if asked++; asked > maxOthersAsked || !yield(a) {
				return
			}
		}
	}
}

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
	for other := range q.some() {
		if other.takesWork(now) && !other.failures.InCooldownFor(madeFrom(w), now) && !slices.Contains(h.failedBy, other.name()) {
			return true
		}
	}
	return false
}
