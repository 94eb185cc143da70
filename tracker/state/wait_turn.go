package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// waitsForOthers explains why nothing of a job is running although suitable agents exist; nil while something is.
func (m *Machine) waitsForOthers(known *supplies, j *job, detail bool) *tilthv1.Wait {
	reason, w := m.idleReason(j)
	if reason == 0 {
		return nil
	}
	wait := &tilthv1.Wait{Reason: reason, Since: m.sinceQueued(w.held())}
	if reason == tilthv1.WaitReason_WAIT_REASON_TURN {
		order := m.order(known, w.class())
		wait.Position, wait.QueueLength = order[w], uint32(len(order))
		wait.Message = oneLine(m.describeTurn(order, w, detail))
	} else {
		wait.Message = oneLine(m.describeHeld(reason, w))
	}
	return wait
}

// order returns the cached position of each piece of queued work of a class, from 1.
func (m *Machine) order(known *supplies, of class) map[work]uint32 {
	if order, is := known.order[of]; is {
		return order
	}
	order := map[work]uint32{}
	if q := m.queues[of]; q != nil {
		for i, w := range q.work.Order() {
			order[w] = uint32(i) + 1
		}
	}
	known.order[of] = order
	return order
}

func (m *Machine) describeHeld(reason tilthv1.WaitReason, w work) string {
	h, owner := w.held(), w.parent().spec.GetOwner()
	switch reason {
	case tilthv1.WaitReason_WAIT_REASON_SILENT:
		a := h.lease.agent
		text := fmt.Sprintf("%s holds it and has been silent since %s", a.name(), formatTime(a.seen))
		if o := m.outage; o != nil {
			return text + fmt.Sprintf(", as have %d of %d agents; waiting for them until %s", o.silent, o.agents, formatTime(o.shownUntil))
		}
		left := h.lease.deadline.Sub(m.cfg.Clock())
		return text + "; waiting for it until " + formatTime(m.cfg.Now().Add(max(left, 0)))
	case tilthv1.WaitReason_WAIT_REASON_RETRY:
		left := h.retry.due.Sub(m.cfg.Clock())
		return fmt.Sprintf("%s failed on %s and will be retried at %s", w.subject(), strings.Join(h.failedBy[:min(len(h.failedBy), maxNamed)], ", "),
			formatTime(m.cfg.Now().Add(max(left, 0)))) + w.parent().lastFailure()
	case tilthv1.WaitReason_WAIT_REASON_QUOTA:
		return fmt.Sprintf("owner %q has %d bytes of artifacts waiting for devices, of at most %d: builds resume once some are measured",
			clip(owner, maxQuoted), m.usageOf(owner).ArtifactBytes, m.cfg.Shares.Of(owner).ArtifactBytes)
	}
	return ""
}

// describeTurn explains whose work the agents are doing, and whose is next.
func (m *Machine) describeTurn(order map[work]uint32, w work, detail bool) string {
	text := "queued for a " + w.class().describe()
	if order[w] > 0 {
		text += fmt.Sprintf(" at position %d of %d", order[w], len(order))
	}
	q := m.queues[w.class()]
	if !detail || q == nil {
		return text
	}
	busy, before := map[string]int{}, map[string]int{}
	for a := range q.offering {
		for _, l := range a.leases {
			if l.queue == q {
				busy[l.work.parent().spec.GetOwner()]++
			}
		}
	}
	for other, position := range order {
		if position < order[w] {
			before[other.parent().spec.GetOwner()]++
		}
	}
	if len(busy) > 0 {
		text += ": in progress are " + countsOf(busy)
	}
	if len(before) > 0 {
		text += "; ahead of it are " + countsOf(before)
	}
	return text
}

// countsOf formats the largest counts by owner.
func countsOf(byOwner map[string]int) string {
	var out []string
	owners := slices.SortedFunc(maps.Keys(byOwner), func(a, b string) int {
		return cmp.Or(cmp.Compare(byOwner[b], byOwner[a]), cmp.Compare(a, b))
	})
	for _, owner := range owners[:min(len(owners), maxNamed)] {
		out = append(out, fmt.Sprintf("%d of %s", byOwner[owner], clip(owner, maxQuoted)))
	}
	if more := len(owners) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("those of %d more owners", more))
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
