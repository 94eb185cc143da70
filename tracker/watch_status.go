package tracker

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// statusEvery is how often a job's status is looked at for who watches it.
const statusEvery = time.Second

// status is how a job stands, by what the tracker knew of agents at the last beat; nil when it has ended.
func (t *Tracker) status(id string) *tilthv1.JobStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[id]
	if j == nil {
		return nil
	}
	return &tilthv1.JobStatus{Wait: t.waits(t.supplies, j, true), TimeSpent: durationpb.New(j.spent), TimeRuns: j.running}
}

// sendStatus sends the job's status if it is another one than before; that time goes on is none. Work is queued for a
// moment whenever it goes from hand to hand, so that is told only when it lasts.
func (w *watcher) sendStatus() error {
	now := w.Tracker.status(w.jobID)
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
