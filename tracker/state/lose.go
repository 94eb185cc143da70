package state

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/wire/names"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// giveBack requeues work without counting the attempt.
func (c *Change) giveBack(w work, why string) {
	name := w.held().lease.agent.name()
	c.release(w)
	if j, ok := w.(*job); ok {
		c.setState(j, j.waiting(), name+" "+why)
	}
	c.enqueue(w, true)
}

// lose takes work from an agent that failed it: it is tried again later, elsewhere if it can be, or given up after too
// many attempts. An agent on which everything fails is to blame itself: it is given a rest, and the attempt counts
// only towards the bound on all attempts.
func (c *Change) lose(w work, class tilthv1.ErrorClass, message string) {
	h, a := w.held(), w.held().lease.agent
	message = records.Cut(message, records.MaxReasonBytes)
	a.failed++
	h.failures++
	if c.strike(a, w) {
		c.beginRest(a, w, message)
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
			c.end(w, tilthv1.JobState_JOB_STATE_FAILED, "given up after repeated loss of its "+names.AgentKind(a.spec.GetKind())+": "+message)
			return
		}
		c.setState(w, w.waiting(), message)
	case *batch:
		if givenUp {
			c.bury(w, class, message)
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

// doubtful is after how many failures of a batch others build it again: the builder may be at fault, not the devices.
const doubtful = 2

// blamelessAttempts bounds all attempts, in those that count: a farm of which every device is broken gives up, too.
const blamelessAttempts = 4

// succeed ends the lease of a batch with an accepted report.
func (c *Change) succeed(b *batch) {
	l := b.lease
	l.agent.completed++
	l.agent.rest.Forgive()
	b.settle()
	c.release(b)
}
