package state

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
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
	l.agent.failures.Forgive()
	b.settle()
	c.release(b)
}
