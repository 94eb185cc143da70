package state

import (
	"slices"
	"strings"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// supply is who could do the work of a class at the moment.
type supply struct {
	of     class
	usable int
	// How many of the usable rest from a job, by its id.
	resting map[string]int
	// Why the others are not, by the reason: how many, and some of them.
	kept map[tilthv1.WaitReason]*kept
	// What describeLack said.
	lack string
}

// kept are agents that are not usable for one reason.
type kept struct {
	count int
	some  []*agent // by name
}

// mostNamed is how many agents a message names.
const mostNamed = 3

// add counts an agent, and keeps those that come first by name.
func (k *kept) add(a *agent) {
	k.count++
	at, _ := slices.BinarySearchFunc(k.some, a, func(x, y *agent) int { return strings.Compare(x.name(), y.name()) })
	if at < mostNamed {
		k.some = slices.Insert(k.some, at, a)
		k.some = k.some[:min(len(k.some), mostNamed)]
	}
}

// supplies are those that were looked at so far, each once.
type supplies struct {
	of map[class]*supply
	// All agents that ever joined, by kind.
	all map[tilthv1.AgentKind]*kept
}

func newSupplies() *supplies {
	return &supplies{of: map[class]*supply{}, all: map[tilthv1.AgentKind]*kept{}}
}

// supply looks at all agents of a class, unless that was done already.
func (m *Machine) supply(known *supplies, of class) *supply {
	if s := known.of[of]; s != nil {
		return s
	}
	s := &supply{of: of, resting: map[string]int{}, kept: map[tilthv1.WaitReason]*kept{}}
	known.of[of] = s
	q := m.queues[of]
	if q == nil {
		return s
	}
	now := m.cfg.Clock()
	for a := range q.offering {
		if reason := m.idleFor(a, now); reason == 0 {
			s.usable++
			if job := a.rest.From(now); job != "" {
				s.resting[job]++
			}
		} else {
			if s.kept[reason] == nil {
				s.kept[reason] = &kept{}
			}
			s.kept[reason].add(a)
		}
	}
	return s
}

// idleFor is why an agent that is joined is given nothing now; 0 when it is.
func (m *Machine) idleFor(a *agent, now time.Time) tilthv1.WaitReason {
	switch {
	case m.isSilent(a, now):
		return tilthv1.WaitReason_WAIT_REASON_SILENT
	case a.device != nil && a.device.cordon != nil:
		return tilthv1.WaitReason_WAIT_REASON_CORDONED
	case a.device != nil && a.device.quarantine != nil:
		return tilthv1.WaitReason_WAIT_REASON_QUARANTINED
	case a.rest.Rests(now):
		return tilthv1.WaitReason_WAIT_REASON_RESTING
	}
	return 0
}

// isSilent says whether an agent has missed several heartbeats, or was not heard since the tracker was started.
func (m *Machine) isSilent(a *agent, now time.Time) bool {
	return a.unheard || now.Sub(a.heard) > m.cfg.LeaseTimeout/2
}

// lacking is the reason why nobody is usable for a job (nil = any): the one that passes soonest; 0 when somebody is.
func (s *supply) lacking(j *job) tilthv1.WaitReason {
	if s.usable > 0 {
		if j != nil && s.resting[j.id] == s.usable {
			return tilthv1.WaitReason_WAIT_REASON_RESTING
		}
		return 0
	}
	for _, reason := range []tilthv1.WaitReason{
		tilthv1.WaitReason_WAIT_REASON_SILENT, tilthv1.WaitReason_WAIT_REASON_RESTING,
		tilthv1.WaitReason_WAIT_REASON_QUARANTINED, tilthv1.WaitReason_WAIT_REASON_CORDONED,
	} {
		if s.kept[reason] != nil {
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

// blocked is what keeps all of a job from going on; nil when nothing does.
func (m *Machine) blocked(known *supplies, j *job) (*supply, tilthv1.WaitReason) {
	for _, needed := range slices.Backward(j.classes()) { // devices first: they are scarcer than what can be started anywhere
		if j.lease != nil && needed == j.class() {
			continue // it has one
		}
		s := m.supply(known, needed)
		if reason := s.lacking(j); reason != 0 {
			return s, reason
		}
	}
	return nil, 0
}
