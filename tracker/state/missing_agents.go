package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// describe describes an agent of the class, e.g. "device of class x86" or "builder with clang-19".
func (c class) describe() string {
	switch {
	case c == anyBuilder:
		return "builder"
	case c == readers:
		return "tuner that reads models"
	case c.kind == tilthv1.AgentKind_AGENT_KIND_BUILDER && c.runs:
		return "builder that makes packages with " + c.name
	case c.kind == tilthv1.AgentKind_AGENT_KIND_BUILDER:
		return "builder with " + c.name
	case c.kind == tilthv1.AgentKind_AGENT_KIND_TUNER:
		return "tuner with " + c.name
	case c.device != "":
		return "device " + c.device + " that runs packages for " + c.name
	case c.runs:
		return "device of class " + c.name + " that runs packages"
	}
	return "device of class " + c.name
}

// describeLack explains why no agent can do the work, and how to fix it. It caches the text in s.
func (m *Machine) describeLack(known *supplies, s *supply, reason tilthv1.WaitReason) string {
	if s.lack == "" {
		s.lack = m.lack(known, s, reason)
	}
	return s.lack
}

func (m *Machine) lack(known *supplies, s *supply, reason tilthv1.WaitReason) string {
	switch reason {
	case tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, tilthv1.WaitReason_WAIT_REASON_NO_TUNER:
		return oneLine(fmt.Sprintf("no %s is joined%s: start one with 'tilth %s'", s.of.describe(), m.describeMismatches(known, s.of), wire.AgentKind(s.of.kind)))
	}
	if s.usable > 0 {
		return oneLine(fmt.Sprintf("each %s is in cooldown for this job after failed leases", s.of.describe()))
	}
	all := 0
	var parts []string
	for _, r := range unavailableReasons {
		k := s.unavailable[r]
		if k == nil {
			continue
		}
		all += k.count
		for _, a := range k.some {
			parts = append(parts, a.name()+" "+m.explainUnavailable(a, r))
		}
		if more := k.count - len(k.some); more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
	}
	if all == 1 {
		return oneLine(fmt.Sprintf("the only %s gets no work: %s", s.of.describe(), strings.Join(parts, "; ")))
	}
	return oneLine(fmt.Sprintf("none of %d agents, each a %s, gets work: %s", all, s.of.describe(), strings.Join(parts, "; ")))
}

// unavailableReasons are the reasons for not giving work to a joined agent.
var unavailableReasons = []tilthv1.WaitReason{
	tilthv1.WaitReason_WAIT_REASON_QUARANTINED, tilthv1.WaitReason_WAIT_REASON_CORDONED,
	tilthv1.WaitReason_WAIT_REASON_RESTING, tilthv1.WaitReason_WAIT_REASON_SILENT, tilthv1.WaitReason_WAIT_REASON_MACHINE,
}

// explainUnavailable explains why an agent is given no work, until when, and how to change that.
func (m *Machine) explainUnavailable(a *agent, reason tilthv1.WaitReason) string {
	switch reason {
	case tilthv1.WaitReason_WAIT_REASON_CORDONED:
		c := a.device.cordon
		text := "is cordoned since " + formatTime(c.GetSince().AsTime())
		if c.GetBy() != "" {
			text += " by " + c.GetBy()
		}
		if c.GetUntil() != nil {
			text += " until " + formatTime(c.GetUntil().AsTime())
		}
		if c.GetReason() != "" {
			text += ": " + clip(c.GetReason(), maxQuoted)
		}
		return text + " ('tilth devices uncordon " + a.name() + "' ends it)"
	case tilthv1.WaitReason_WAIT_REASON_QUARANTINED:
		q := a.device.quarantine
		return fmt.Sprintf("is quarantined since %s, until %s at least: %s ('tilth devices show %s' tells more)",
			formatTime(q.GetSince().AsTime()), formatTime(q.GetUntil().AsTime()), clip(q.GetReason(), maxQuoted), a.name())
	case tilthv1.WaitReason_WAIT_REASON_RESTING:
		until, why, _ := a.failures.Last()
		return fmt.Sprintf("is in cooldown until %s: %s", formatTime(until), clip(why, maxQuoted))
	case tilthv1.WaitReason_WAIT_REASON_MACHINE:
		return "waits for its machine, held by " + clip(a.machineHeldBy, maxQuoted) + ": wait for it, or end it"
	}
	return "has been silent since " + formatTime(a.seen)
}

// maxQuoted bounds a quoted text within a message, in bytes.
const maxQuoted = 200

// describeMismatches describes agents of the right kind that do not fit: devices of other classes, and agents that
// are gone.
func (m *Machine) describeMismatches(known *supplies, c class) string {
	all := known.all[c.kind]
	if all == nil {
		all = &unavailableAgents{}
		for _, a := range m.agents {
			if a.spec.GetKind() == c.kind {
				all.add(a)
			}
		}
		known.all[c.kind] = all
	}
	var parts []string
	for _, a := range all.some {
		parts = append(parts, a.name()+" "+c.mismatch(a))
	}
	if more := all.count - len(all.some); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more are unsuitable", more))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// mismatch explains why an agent cannot do the work of the class.
func (c class) mismatch(a *agent) string {
	switch {
	case a.gone:
		return "is gone since " + formatTime(a.seen)
	case c.runs && slices.Contains(a.offers, class{kind: c.kind, name: c.name}):
		return "does not run or make packages, or is another device"
	case c.reads:
		return "cannot read models"
	}
	var names []string
	for _, o := range a.offers {
		if !o.runs && !o.reads && o != anyBuilder && len(names) < maxNamed {
			names = append(names, o.name)
		}
	}
	return "has " + clip(strings.Join(names, ", "), maxQuoted)
}

// maxWaitBytes bounds the message that explains why a job waits.
const maxWaitBytes = 1000

// oneLine joins text from several sources into one bounded line.
func oneLine(text string) string { return clip(strings.Join(strings.Fields(text), " "), maxWaitBytes) }

// formatTime formats a time for messages.
func formatTime(when time.Time) string { return when.UTC().Format(time.RFC3339) }
