package tracker

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// waits says why nothing of a job is being done; nil while something is, or somebody paused it. Of a single job it
// also says in detail who is before it. The caller holds the lock.
func (t *Tracker) waits(known *supplies, j *job, detail bool) *tilthv1.Wait {
	if j.paused() {
		return nil
	}
	if s, reason := t.blocked(known, j); reason != 0 {
		w := &tilthv1.Wait{Reason: reason, Message: t.describeLack(known, s, reason), NothingCanRun: true, Since: timestamppb.New(t.cfg.Now())}
		if j.blocked == reason {
			w.Since = timestamppb.New(j.blockedSince)
		}
		return w
	}
	return t.waitsForOthers(j, detail)
}

// waitReason is the reason alone; 0 while something is being done.
func (t *Tracker) waitReason(known *supplies, j *job) tilthv1.WaitReason {
	if j.paused() {
		return 0
	}
	if _, reason := t.blocked(known, j); reason != 0 {
		return reason
	}
	reason, _ := t.holdUp(j)
	return reason
}

// holdUp says why nothing of a job is being done that could be, and which of its work waits; 0 while something is.
func (t *Tracker) holdUp(j *job) (tilthv1.WaitReason, work) {
	if j.lease == nil {
		return t.whyQueued(j), j
	}
	if j.runs() || len(j.batches) == 0 {
		return t.silentLease(j.lease), j
	}
	var first *batch
	for _, b := range j.batches {
		if b.lease != nil {
			if t.silentLease(b.lease) == 0 {
				return 0, nil
			}
		}
		if first == nil || b.proposal < first.proposal {
			first = b
		}
	}
	return t.whyQueued(first), first
}

// silentLease is why leased work does not go on: its agent is silent; 0 when it is not.
func (t *Tracker) silentLease(l *lease) tilthv1.WaitReason {
	if t.isSilent(l.agent, t.cfg.Clock()) {
		return tilthv1.WaitReason_WAIT_REASON_SILENT
	}
	return 0
}

// whyQueued is why work waits.
func (t *Tracker) whyQueued(w work) tilthv1.WaitReason {
	switch h := w.held(); {
	case h.lease != nil:
		return t.silentLease(h.lease)
	case h.retry != nil:
		return tilthv1.WaitReason_WAIT_REASON_RETRY
	case w.class().kind == tilthv1.AgentKind_AGENT_KIND_BUILDER && !t.mayBuild(w.parent().spec.GetOwner()):
		return tilthv1.WaitReason_WAIT_REASON_QUOTA
	}
	return tilthv1.WaitReason_WAIT_REASON_TURN
}

// shown is a job as clients see it, with why it waits.
func (t *Tracker) shown(j *job) *tilthv1.Job {
	out := j.whole()
	out.Wait = t.waits(newSupplies(), j, true)
	return out
}

const (
	// maxListedBytes bounds the message of a job in a listing, and mostWaitsBytes all of a listing's: it has room for
	// so many beside the jobs.
	maxListedBytes = 250
	mostWaitsBytes = 512 << 10
)

// addWaits says of stored jobs why they wait; beyond so many only the reason. The caller does not hold the lock.
func (t *Tracker) addWaits(detail bool, jobs ...*tilthv1.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, room := newSupplies(), mostWaitsBytes
	for _, stored := range jobs {
		j := t.jobs[stored.GetId()]
		if j == nil {
			continue
		}
		if j.meta.GetTimeSpent() != nil { // what is stored of it is older
			stored.TimeSpent = durationpb.New(j.spent)
		}
		stored.Wait = t.waits(known, j, detail)
		if w := stored.GetWait(); w != nil && !detail {
			w.Message = clip(w.GetMessage(), min(maxListedBytes, room))
			room = max(room-len(w.GetMessage()), 0)
		}
	}
}

// CheckFarm implements tilthv1.JobServiceServer.
func (t *Tracker) CheckFarm(_ context.Context, req *tilthv1.CheckFarmRequest) (*tilthv1.CheckFarmResponse, error) {
	spec := &tilthv1.JobSpec{
		Target: &tilthv1.TargetSpec{DeviceClass: req.GetDeviceClass(), Toolchain: req.GetToolchain()}, Tuner: req.GetTuner(),
	}
	fields := map[string]string{"device_class": req.GetDeviceClass()}
	if req.GetRun() {
		spec.Run = &tilthv1.RunSpec{Device: req.GetDevice()}
	} else {
		fields["toolchain"], fields["tuner"] = req.GetToolchain(), req.GetTuner()
	}
	for field, value := range fields {
		if err := checkName(field, value); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known, j := newSupplies(), &job{spec: spec, meta: &tilthv1.Job{}}
	if _, reason := t.blocked(known, j); reason == 0 {
		return &tilthv1.CheckFarmResponse{}, nil
	}
	return &tilthv1.CheckFarmResponse{Wait: t.waits(known, j, false)}, nil
}

// sinceQueued is when work was queued, on the wall's clock.
func (t *Tracker) sinceQueued(h *hold) *timestamppb.Timestamp {
	if h.queued.IsZero() {
		return nil
	}
	return timestamppb.New(t.cfg.Now().Add(-t.cfg.Clock().Sub(h.queued).Round(time.Millisecond)))
}
