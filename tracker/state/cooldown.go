package state

import (
	"iter"
	"slices"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

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
	for a := range m.someBuilders(b) {
		if a.owner() != b.builtBy && a.takesWork(now) {
			return true
		}
	}
	return false
}

// buildElsewhere requeues a batch for building, preferably by another builder.
func (c *Change) buildElsewhere(b *batch) {
	c.toBuild(b)
	for a := range c.someBuilders(b) {
		if a.owner() == b.builtBy {
			b.failedBy = append(b.failedBy, a.name())
		}
	}
	slices.Sort(b.failedBy)
}

// someBuilders yields a bounded number of agents that can build for the batch's target.
func (m *Machine) someBuilders(b *batch) iter.Seq[*agent] {
	return func(yield func(*agent) bool) {
		q, asked := m.queues[b.buildClass()], 0
		if q == nil {
			return
		}
		for a := range q.offering {
			if asked++; asked > maxOthersAsked || !yield(a) {
				return
			}
		}
	}
}
