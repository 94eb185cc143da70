package state

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// waits says why nothing of a job is being done; nil while something is, or somebody paused it. Of a single job it
// also says in detail who is before it.
func (m *Machine) waits(known *supplies, j *job, detail bool) *tilthv1.Wait {
	if j.paused() {
		return nil
	}
	if s, reason := m.blocked(known, j); reason != 0 {
		w := &tilthv1.Wait{Reason: reason, Message: m.describeLack(known, s, reason), NothingCanRun: true, Since: timestamppb.New(m.cfg.Now())}
		if j.blocked == reason {
			w.Since = timestamppb.New(j.blockedSince)
		}
		return w
	}
	return m.waitsForOthers(j, detail)
}

// waitReason is the reason alone; 0 while something is being done.
func (m *Machine) waitReason(known *supplies, j *job) tilthv1.WaitReason {
	if j.paused() {
		return 0
	}
	if _, reason := m.blocked(known, j); reason != 0 {
		return reason
	}
	reason, _ := m.holdUp(j)
	return reason
}

// holdUp says why nothing of a job is being done that could be, and which of its work waits; 0 while something is.
func (m *Machine) holdUp(j *job) (tilthv1.WaitReason, work) {
	if j.lease == nil {
		return m.whyQueued(j), j
	}
	if j.runs() || len(j.batches) == 0 {
		return m.silentLease(j.lease), j
	}
	var first *batch
	for _, b := range j.batches {
		if b.lease != nil {
			if m.silentLease(b.lease) == 0 {
				return 0, nil
			}
		}
		if first == nil || b.proposal < first.proposal {
			first = b
		}
	}
	return m.whyQueued(first), first
}

// silentLease is why leased work does not go on: its agent is silent; 0 when it is not.
func (m *Machine) silentLease(l *lease) tilthv1.WaitReason {
	if m.isSilent(l.agent, m.cfg.Clock()) {
		return tilthv1.WaitReason_WAIT_REASON_SILENT
	}
	return 0
}

// whyQueued is why work waits.
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

// shown is a job as clients see it, with why it waits.
func (m *Machine) shown(j *job) *tilthv1.Job {
	out := j.whole()
	out.Wait = m.waits(newSupplies(), j, true)
	return out
}

const (
	// maxListedBytes bounds the message of a job in a listing, and mostWaitsBytes all of a listing's: it has room for
	// so many beside the jobs.
	maxListedBytes = 250
	mostWaitsBytes = 512 << 10
)

// AddWaits says of stored jobs why they wait; beyond so many only the reason.
func (m *Machine) AddWaits(detail bool, jobs ...*tilthv1.Job) {
	known, room := newSupplies(), mostWaitsBytes
	for _, stored := range jobs {
		j := m.jobs[stored.GetId()]
		if j == nil {
			continue
		}
		if j.meta.GetTimeSpent() != nil { // what is stored of it is older
			stored.TimeSpent = durationpb.New(j.spent)
		}
		stored.Wait = m.waits(known, j, detail)
		if w := stored.GetWait(); w != nil && !detail {
			w.Message = clip(w.GetMessage(), min(maxListedBytes, room))
			room = max(room-len(w.GetMessage()), 0)
		}
	}
}

// sinceQueued is when work was queued, on the wall's clock.
func (m *Machine) sinceQueued(h *hold) *timestamppb.Timestamp {
	if h.queued.IsZero() {
		return nil
	}
	return timestamppb.New(m.cfg.Now().Add(-m.cfg.Clock().Sub(h.queued).Round(time.Millisecond)))
}

// CheckFarm says why a job of a specification would wait now; nil when it would not for want of agents.
func (m *Machine) CheckFarm(spec *tilthv1.JobSpec) *tilthv1.Wait {
	known, j := newSupplies(), &job{spec: spec, meta: &tilthv1.Job{}}
	if _, reason := m.blocked(known, j); reason == 0 {
		return nil
	}
	return m.waits(known, j, false)
}

// Status is how a job stands, by what the machine knew of agents at the last beat; nil when it has ended.
func (m *Machine) Status(jobID string) *tilthv1.JobStatus {
	j := m.jobs[jobID]
	if j == nil {
		return nil
	}
	return &tilthv1.JobStatus{Wait: m.waits(m.supplies, j, true), TimeSpent: durationpb.New(j.spent), TimeRuns: j.running}
}

// JobOwner is the owner of a job that has not ended.
func (m *Machine) JobOwner(jobID string) (owner records.Owner, ok bool) {
	j := m.jobs[jobID]
	if j == nil {
		return records.Owner{}, false
	}
	return records.Owner{Name: j.spec.GetOwner(), Private: j.spec.GetPrivate()}, true
}
