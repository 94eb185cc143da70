package rpc

import (
	"time"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// statusEvery is how often a watched job's status is checked.
const statusEvery = time.Second

// sendStatus sends the job's status if it has changed; elapsed time alone is no change. Work is queued briefly at
// every handover, so that state is sent only if it lasts.
func (w *watcher) sendStatus() error {
	var now *tilthv1.JobStatus
	w.coordinator.Read(func(m *state.Machine) { now = m.Status(w.jobID) })
	if now == nil && w.shard.elsewhere(w.jobID) { // this shard has no further status
		now = &tilthv1.JobStatus{}
	}
	queued := now.GetWait().GetReason() == tilthv1.WaitReason_WAIT_REASON_TURN
	if queued && !w.queued {
		now.Wait = nil
	}
	w.queued = queued
	if now == nil || w.status != nil && now.GetTimeRuns() == w.status.GetTimeRuns() && sameWait(now.GetWait(), w.status.GetWait()) {
		return nil
	}
	w.status = now
	return w.stream.Send(&tilthv1.WatchJobResponse{Status: now})
}

func sameWait(a, b *tilthv1.Wait) bool {
	return proto.Equal(a, b) ||
		a != nil && b != nil && a.GetReason() == b.GetReason() && a.GetMessage() == b.GetMessage() && a.GetNothingCanRun() == b.GetNothingCanRun()
}
