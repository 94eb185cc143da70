package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// waitsForOthers explains why nothing of a job is running although suitable agents exist; nil while something is.
func (m *Machine) waitsForOthers(j *job, detail bool) *tilthv1.Wait {
	reason, w := m.idleReason(j)
	if reason == 0 {
		return nil
	}
	return &tilthv1.Wait{Reason: reason, Message: oneLine(m.describeHeld(reason, w, detail)), Since: m.sinceQueued(w.held())}
}

func (m *Machine) describeHeld(reason tilthv1.WaitReason, w work, detail bool) string {
	h, owner := w.held(), w.parent().spec.GetOwner()
	switch reason {
	case tilthv1.WaitReason_WAIT_REASON_SILENT:
		a := h.lease.agent
		text := fmt.Sprintf("%s holds it and is silent since %s", a.name(), formatTime(a.seen))
		if o := m.outage; o != nil {
			return text + fmt.Sprintf(", as are %d of %d agents; waiting for them until %s", o.silent, o.agents, formatTime(o.shownUntil))
		}
		left := h.lease.deadline.Sub(m.cfg.Clock())
		return text + "; waiting for it until " + formatTime(m.cfg.Now().Add(max(left, 0)))
	case tilthv1.WaitReason_WAIT_REASON_RETRY:
		left := h.retry.due.Sub(m.cfg.Clock())
		return fmt.Sprintf("%s failed on %s and is tried again at %s", w.subject(), strings.Join(h.failedBy[:min(len(h.failedBy), maxNamed)], ", "),
			formatTime(m.cfg.Now().Add(max(left, 0))))
	case tilthv1.WaitReason_WAIT_REASON_QUOTA:
		return fmt.Sprintf("owner %q has %d bytes of artifacts waiting for devices, and may have %d: nothing more is built until some are measured",
			clip(owner, maxQuoted), m.usageOf(owner).ArtifactBytes, m.cfg.Shares.Of(owner).ArtifactBytes)
	}
	return m.describeTurn(w, detail)
}

// describeTurn explains whose work the agents are doing, and whose is next.
func (m *Machine) describeTurn(w work, detail bool) string {
	text := fmt.Sprintf("queued for a %s", w.class().describe())
	q := m.queues[w.class()]
	if !detail || q == nil {
		return text
	}
	busy, owners := 0, map[string]int{}
	for a := range q.offering {
		for _, l := range a.leases {
			if l.queue == q {
				busy++
				owners[l.work.parent().spec.GetOwner()]++
			}
		}
	}
	if busy > 0 {
		text += fmt.Sprintf(": %d in progress, of %s", busy, listed(len(owners), slices.Sorted(maps.Keys(owners))))
	}
	others, own := q.work.Before(m.flow(w))
	var before []string
	for _, o := range others[:min(len(others), maxNamed)] {
		before = append(before, fmt.Sprintf("%d of %s", o.Items, clip(o.Owner, maxQuoted)))
	}
	if len(others) > maxNamed {
		before = append(before, fmt.Sprintf("those of %d more owners", len(others)-maxNamed))
	}
	if own > 0 {
		before = append(before, fmt.Sprintf("%d of other jobs of %s", own, clip(w.parent().spec.GetOwner(), maxQuoted)))
	}
	if before != nil {
		text += "; ahead of it are " + strings.Join(before, ", ")
	}
	return text
}

// listed joins the first few names and counts the rest.
func listed(count int, names []string) string {
	var out []string
	for _, name := range names[:min(len(names), maxNamed)] {
		out = append(out, clip(name, maxQuoted))
	}
	if more := count - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more owners", more))
	}
	return strings.Join(out, ", ")
}

// waitReasons counts the waiting jobs by reason, with an entry for every reason.
func (m *Machine) waitReasons() map[tilthv1.WaitReason]int {
	known, counts := newSupplies(), map[tilthv1.WaitReason]int{}
	for number := range tilthv1.WaitReason_name {
		if reason := tilthv1.WaitReason(number); reason != tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED {
			counts[reason] = 0
		}
	}
	for _, j := range m.jobs {
		if reason := m.waitReason(known, j); reason != 0 {
			counts[reason]++
		}
	}
	return counts
}
