package state

import (
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/tracker/policy/rest"
)

// strike notes a failed lease of an agent, and says whether the agent rather than the work is to blame. The leases
// that end with a session are one failure: the agent died once.
func (m *Machine) strike(a *agent, w work) (suspect bool) {
	counts := !a.gone || !a.struckOut
	a.struckOut = a.gone
	what := madeFrom(w)
	if what.Builder != "" && !m.othersBuild(w.(*batch)) {
		what.Builder = ""
	}
	return a.rest.Strike(what, counts)
}

// madeFrom says what a lease of the work would be of.
func madeFrom(w work) rest.Work {
	what := rest.Work{Subject: w.subject(), Job: w.parent().id, Private: w.parent().spec.GetPrivate()}
	if b, ok := w.(*batch); ok && b.stage == storev1.Stage_STAGE_MEASURE {
		what.Builder = b.builtBy
	}
	return what
}

// beginRest has an agent that is to blame wait before it is tried again. A single lease then tells whether it works.
// Everybody reads why an agent rests, but of a private job only that it was one.
func (c *Change) beginRest(a *agent, w work, message string) {
	if w.parent().spec.GetPrivate() {
		message = "work of a private job"
	}
	wait, begun := c.cfg.Rest.Begin(&a.rest, c.cfg.Clock(), c.cfg.Now(), clip(message, maxMessageBytes))
	if !begun {
		return
	}
	c.tell(Rested)
	_, reason, _ := a.rest.Last()
	c.log.Warn("agent is given a rest", "agent", a.name(), "seconds", wait.Seconds(), "reason", reason)
}
