package state

import (
	"slices"
	"strings"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// supply counts the agents that could do the work of a class now.
type supply struct {
	of     class
	usable int
	// coolingDown counts the usable agents in a cooldown from a job, by job id.
	coolingDown map[string]int
	// unavailable holds the unusable agents by reason.
	unavailable map[tilthv1.WaitReason]*unavailableAgents
	// lack caches the result of describeLack.
	lack string
}

// unavailableAgents are the agents that are unusable for one reason.
type unavailableAgents struct {
	count int
	some  []*agent // the first few by name
}

// maxNamed bounds the agents that a message names.
const maxNamed = 3

// add counts an agent. It keeps the few that come first by name.
func (k *unavailableAgents) add(a *agent) {
	k.count++
	at, _ := slices.BinarySearchFunc(k.some, a, func(x, y *agent) int { return strings.Compare(x.name(), y.name()) })
	if at < maxNamed {
		k.some = slices.Insert(k.some, at, a)
		k.some = k.some[:min(len(k.some), maxNamed)]
	}
}

// supplies caches the supply of each class.
type supplies struct {
	of map[class]*supply
	// all holds all known agents by kind.
	all map[tilthv1.AgentKind]*unavailableAgents
	// order caches the positions of queued work.
	order map[class]map[work]uint32
}

func newSupplies() *supplies {
	return &supplies{of: map[class]*supply{}, all: map[tilthv1.AgentKind]*unavailableAgents{}, order: map[class]map[work]uint32{}}
}

// supply returns the cached supply of a class, computing it on first use.
func (m *Machine) supply(known *supplies, of class) *supply {
	if s := known.of[of]; s != nil {
		return s
	}
	s := &supply{of: of, coolingDown: map[string]int{}, unavailable: map[tilthv1.WaitReason]*unavailableAgents{}}
	known.of[of] = s
	q := m.queues[of]
	if q == nil {
		return s
	}
	now := m.cfg.Clock()
	for a := range q.offering {
		if reason := m.idleFor(a, now); reason == 0 {
			s.usable++
			if job := a.failures.CooldownJob(now); job != "" {
				s.coolingDown[job]++
			}
		} else {
			if s.unavailable[reason] == nil {
				s.unavailable[reason] = &unavailableAgents{}
			}
			s.unavailable[reason].add(a)
		}
	}
	return s
}

// idleFor returns why an agent with a session is given no work now, or 0.
func (m *Machine) idleFor(a *agent, now time.Time) tilthv1.WaitReason {
	switch {
	case m.isSilent(a, now):
		return tilthv1.WaitReason_WAIT_REASON_SILENT
	case a.device != nil && a.device.cordon != nil:
		return tilthv1.WaitReason_WAIT_REASON_CORDONED
	case a.device != nil && a.device.quarantine != nil:
		return tilthv1.WaitReason_WAIT_REASON_QUARANTINED
	case a.failures.InCooldown(now):
		return tilthv1.WaitReason_WAIT_REASON_RESTING
	case a.machineHeldBy != "":
		return tilthv1.WaitReason_WAIT_REASON_MACHINE
	}
	return 0
}

// isSilent reports whether an agent has missed several heartbeats, or has not called since the tracker started.
func (m *Machine) isSilent(a *agent, now time.Time) bool {
	return a.unheard || now.Sub(a.heard) > m.cfg.LeaseTimeout/2
}

// lacking returns why no agent is usable for a job (nil means any job), or 0. Of several reasons it returns the one
// that passes soonest.
func (s *supply) lacking(j *job) tilthv1.WaitReason {
	if s.usable > 0 {
		if j != nil && s.coolingDown[j.id] == s.usable {
			return tilthv1.WaitReason_WAIT_REASON_RESTING
		}
		return 0
	}
	for _, reason := range []tilthv1.WaitReason{
		tilthv1.WaitReason_WAIT_REASON_MACHINE, tilthv1.WaitReason_WAIT_REASON_SILENT, tilthv1.WaitReason_WAIT_REASON_RESTING,
		tilthv1.WaitReason_WAIT_REASON_QUARANTINED, tilthv1.WaitReason_WAIT_REASON_CORDONED,
	} {
		if s.unavailable[reason] != nil {
			return reason
		}
	}
	switch s.of.kind {
	case tilthv1.AgentKind_AGENT_KIND_BUILDER:
		return tilthv1.WaitReason_WAIT_REASON_NO_BUILDER
	case tilthv1.AgentKind_AGENT_KIND_TUNER:
		return tilthv1.WaitReason_WAIT_REASON_NO_TUNER
	}
	return tilthv1.WaitReason_WAIT_REASON_NO_DEVICE
}

// blocked returns what keeps all of a job from running, or nil.
func (m *Machine) blocked(known *supplies, j *job) (*supply, tilthv1.WaitReason) {
	for _, needed := range slices.Backward(j.classes()) { // devices first: they are the scarcest
		if j.lease != nil && needed == j.class() {
			if a := j.lease.agent; m.idleFor(a, m.cfg.Clock()) == tilthv1.WaitReason_WAIT_REASON_MACHINE {
				s := &supply{of: needed, unavailable: map[tilthv1.WaitReason]*unavailableAgents{}}
				s.unavailable[tilthv1.WaitReason_WAIT_REASON_MACHINE] = &unavailableAgents{count: 1, some: []*agent{a}}
				return s, tilthv1.WaitReason_WAIT_REASON_MACHINE
			}
			continue // it already has one
		}
		s := m.supply(known, needed)
		if reason := s.lacking(j); reason != 0 {
			return s, reason
		}
	}
	return nil, 0
}
