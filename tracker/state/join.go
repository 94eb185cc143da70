package state

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Joined is the response to an agent that joined.
type Joined struct {
	// HeartbeatInterval is how often the agent must report. Calibrate asks it to calibrate its device first.
	HeartbeatInterval time.Duration
	Calibrate         bool
}

// Join registers an agent with a new session. It voids an older session of the same name.
func (c *Change) Join(spec *tilthv1.AgentSpec, session, identity string) (Joined, error) {
	a := newAgent(spec, session)
	if err := cmp.Or(c.checkTakeover(spec.GetName(), identity), c.roomForAgent(a)); err != nil {
		return Joined{}, err
	}
	a.joined, a.identity = c.now(), identity
	c.keepAlive(a)
	if old := c.agents[spec.GetName()]; old != nil {
		if !old.gone {
			c.void(old, func(w work) {
				c.failAttempt(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, fmt.Sprintf("%s joined again", spec.GetName()))
			})
		}
		a.failures = old.failures
	}
	c.admit(a)
	c.forgetOldest()
	told := Joined{HeartbeatInterval: c.heartbeatInterval(), Calibrate: c.rejoined(a)}
	c.write.PutAgent(a.proto())
	c.log.Info("agent joined", "agent", spec.GetName(), "kind", wire.AgentKind(spec.GetKind()), "version", spec.GetVersion())
	return told, nil
}

// Leave ends a session at its agent's request. Repeating the call changes nothing.
func (c *Change) Leave(session string) {
	if a := c.sessions[session]; a != nil {
		c.log.Info("agent left", "agent", a.spec.GetName())
		c.void(a, func(w work) { c.giveBack(w, "left") })
	}
}

// checkTakeover refuses a name whose live session belongs to another identity, whose leases would be lost. After a
// board is reinstalled under a new identity, its name is free once the old session is gone.
func (c *Change) checkTakeover(name, identity string) error {
	old := c.agents[name]
	if old == nil || old.gone || old.identity == identity {
		return nil
	}
	return Refuse(Denied, "agent %q is joined by another identity: choose another --name, or stop the other", name)
}
