package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// waits explains why nothing of a job is running; nil while something is, or the job is paused. With detail, it also
// lists whose work is ahead.
func (m *Machine) waits(known *supplies, j *job, detail bool) *tilthv1.Wait {
	if j.paused() {
		return nil
	}
	if s, reason := m.blocked(known, j); reason != 0 {
		w := &tilthv1.Wait{Reason: reason, Message: m.describeLack(known, s, reason), NothingCanRun: true, Since: timestamppb.New(m.cfg.Now())}
		if reason == tilthv1.WaitReason_WAIT_REASON_RESTING {
			w.Message = oneLine(w.GetMessage() + j.lastFailure())
		}
		if j.blocked == reason {
			w.Since = timestamppb.New(j.blockedSince)
		}
		return w
	}
	return m.waitsForOthers(known, j, detail)
}

// waitReason returns only the reason; 0 while something is running.
func (m *Machine) waitReason(known *supplies, j *job) tilthv1.WaitReason {
	if j.paused() {
		return 0
	}
	if _, reason := m.blocked(known, j); reason != 0 {
		return reason
	}
	reason, _ := m.idleReason(j)
	return reason
}

// idleReason returns why nothing of an unblocked job is running, and the work that waits; 0 while something is.
func (m *Machine) idleReason(j *job) (tilthv1.WaitReason, work) {
	if j.lease == nil {
		return m.whyQueued(j), j
	}
	if j.runs() || len(j.batches) == 0 {
		return m.silentLease(j.lease), j
	}
	var first *batch
	for _, b := range j.batches {
		if b.lease != nil && m.silentLease(b.lease) == 0 {
			return 0, nil
		}
		if first == nil || b.proposal < first.proposal {
			first = b
		}
	}
	return m.whyQueued(first), first
}

// silentLease returns the reason SILENT if the lease's agent is silent, else 0.
func (m *Machine) silentLease(l *lease) tilthv1.WaitReason {
	if m.isSilent(l.agent, m.cfg.Clock()) {
		return tilthv1.WaitReason_WAIT_REASON_SILENT
	}
	return 0
}

// whyQueued returns why work is waiting.
func (m *Machine) whyQueued(w work) tilthv1.WaitReason {
	switch h := w.held(); {
	case h.lease != nil:
		return m.silentLease(h.lease)
	case h.retry != nil:
		return tilthv1.WaitReason_WAIT_REASON_RETRY
	case w.class().kind == tilthv1.AgentKind_AGENT_KIND_BUILDER && !m.mayBuild(w.parent().spec.GetOwner()):
		return tilthv1.WaitReason_WAIT_REASON_QUOTA
	}
	return tilthv1.WaitReason_WAIT_REASON_TURN
}

// jobView returns a job as clients see it, including why it waits.
func (m *Machine) jobView(j *job) *tilthv1.Job {
	out := j.whole()
	out.Wait = m.waits(newSupplies(), j, true)
	return out
}

const (
	// maxListedBytes bounds the message of each job in a listing; maxWaitsBytes bounds their total.
	maxListedBytes = 250
	maxWaitsBytes  = 512 << 10
)

// AddWaits adds to stored jobs why they wait. Once the messages exceed their bound, it adds only the reasons.
func (m *Machine) AddWaits(detail bool, jobs ...*tilthv1.Job) {
	known, room := newSupplies(), maxWaitsBytes
	for _, stored := range jobs {
		j := m.jobs[stored.GetId()]
		if j == nil {
			continue
		}
		if j.meta.GetTimeSpent() != nil { // the stored value is older
			stored.TimeSpent = durationpb.New(j.spent)
		}
		stored.Wait = m.waits(known, j, detail)
		if w := stored.GetWait(); w != nil && !detail {
			w.Message = clip(w.GetMessage(), min(maxListedBytes, room))
			room = max(room-len(w.GetMessage()), 0)
		}
	}
}

// CheckFarm reports why a job of the specification could not run for lack of agents, or nil.
func (m *Machine) CheckFarm(spec *tilthv1.JobSpec) *tilthv1.Wait {
	known, j := newSupplies(), &job{spec: spec, meta: &tilthv1.Job{}}
	if _, reason := m.blocked(known, j); reason == 0 {
		return nil
	}
	return m.waits(known, j, false)
}

// Status returns the status of a job as of the last tick, or nil if it has ended.
func (m *Machine) Status(jobID string) *tilthv1.JobStatus {
	j := m.jobs[jobID]
	if j == nil {
		return nil
	}
	return &tilthv1.JobStatus{Wait: m.waits(m.supplies, j, true), TimeSpent: durationpb.New(j.spent), TimeRuns: j.running}
}

// JobOwner returns the owner of an open job.
func (m *Machine) JobOwner(jobID string) (owner records.Owner, ok bool) {
	j := m.jobs[jobID]
	if j == nil {
		return records.Owner{}, false
	}
	return records.Owner{Name: j.spec.GetOwner(), Private: j.spec.GetPrivate()}, true
}

// noteBlocked records why nothing of a job can run, and since when.
func (c *Change) noteBlocked(j *job, known *supplies) {
	_, reason := c.blocked(known, j)
	if j.paused() {
		reason = 0
	}
	if reason != j.blocked {
		j.blocked, j.blockedSince = reason, c.cfg.Now()
	}
}

// logLacks logs the classes of work that became unserviceable, or serviceable again, since the previous tick.
func (c *Change) logLacks(before, now *supplies) {
	for of, s := range now.of {
		was := false
		if old := before.of[of]; old != nil {
			was = old.lacking(nil) != 0
		}
		reason := s.lacking(nil)
		if reason != 0 {
			c.describeLack(now, s, reason) // with the agents of this tick; the text is reused until the next
		}
		switch {
		case reason != 0 && !was:
			c.log.Warn("jobs wait", "for", of.describe(), "reason", wire.WaitReason(reason), "message", c.describeLack(now, s, reason))
		case reason == 0 && was:
			c.log.Info("jobs no longer wait", "for", of.describe())
		}
	}
}

// waitsForOthers explains why nothing of a job is running although suitable agents exist; nil while something is.
func (m *Machine) waitsForOthers(known *supplies, j *job, detail bool) *tilthv1.Wait {
	reason, w := m.idleReason(j)
	if reason == 0 {
		return nil
	}
	wait := &tilthv1.Wait{Reason: reason}
	if queued := w.held().queued; !queued.IsZero() { // on the wall clock
		wait.Since = timestamppb.New(m.cfg.Now().Add(-m.cfg.Clock().Sub(queued).Round(time.Millisecond)))
	}
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
