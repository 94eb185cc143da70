package state

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
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

// Members counts sessions by identity. Its methods are safe for concurrent use, so callers need not lock the machine.
type Members struct {
	mu     sync.Mutex
	counts map[string]int
}

// Members returns the machine's counts.
func (m *Machine) Members() *Members { return &m.members }

// Of returns the number of sessions of an identity.
func (m *Members) Of(identity string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[identity]
}

func (m *Members) add(identity string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	if m.counts[identity] += n; m.counts[identity] == 0 {
		delete(m.counts, identity)
	}
}

// offersOf returns the classes of work that an agent accepts, without duplicates.
func offersOf(spec *tilthv1.AgentSpec) (out []class) {
	known := map[class]bool{}
	add := func(c class) {
		if !known[c] {
			known[c] = true
			out = append(out, c)
		}
	}
	runs := slices.Contains(spec.GetCapabilities(), wire.RunsPackages)
	for _, name := range slices.Concat(spec.GetTuners(), spec.GetToolchains()) {
		add(class{kind: spec.GetKind(), name: name})
		if runs && spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER {
			add(class{kind: spec.GetKind(), name: name, runs: true})
		}
	}
	switch {
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_TUNER && slices.Contains(spec.GetCapabilities(), wire.ReadsModels):
		add(readers)
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER && len(spec.GetToolchains()) > 0:
		add(anyBuilder)
	}
	for _, d := range spec.GetDeviceClasses() {
		add(class{kind: spec.GetKind(), name: d.GetName()})
		if runs {
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true})
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true, device: spec.GetName()})
		}
	}
	return out
}

// offered returns the largest number of toolchains, device classes or tuners in a spec.
func offered(spec *tilthv1.AgentSpec) int {
	return max(len(spec.GetTuners()), len(spec.GetToolchains()), len(spec.GetDeviceClasses()))
}
