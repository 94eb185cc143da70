package rpc

import (
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/state"
)

const eventsPerRead = 256

// WatchJob implements tilthv1.JobServiceServer. It sends only events that are on disk: first the stored log, then new
// events as they are stored.
func (s *Services) WatchJob(req *tilthv1.WatchJobRequest, stream grpc.ServerStreamingServer[tilthv1.WatchJobResponse]) error {
	if err := s.mayWatch(viewerOf(stream.Context()), req.GetJobId()); err != nil {
		return err
	}
	w := &watcher{Services: s, jobID: req.GetJobId(), next: max(1, req.GetFromSequence()), several: req.GetSeveral(), statuses: req.GetStatus(), stream: stream}
	// Subscribe before reading the log, so that no event is lost between the two.
	if w.events = s.coordinator.Watches().Subscribe(w.jobID); w.events == nil {
		return s.status(state.RefuseOf(state.Overloaded, "watches", "the tracker sends %d streams of events, and has no room for more: try again",
			s.coordinator.Watches().Max()))
	}
	defer s.coordinator.Watches().End(w.jobID, w.events)
	if req.GetAttached() {
		s.coordinator.Read(func(m *state.Machine) { m.Attach(w.jobID) })
	}
	if err := w.checkHistory(req.GetAfter()); err != nil {
		return err
	}
	for {
		if err := w.catchUp(); err != nil || w.ended {
			return err
		}
		if err := w.follow(); err != nil || w.ended {
			return err
		}
	}
}

// watcher is one stream of a job's events.
type watcher struct {
	*Services
	jobID   string
	next    uint64 // sequence number of the next event
	several bool   // a message may hold several events
	// statuses is set if the caller wants the job's status; status is the last one sent.
	statuses bool
	status   *tilthv1.JobStatus
	queued   bool // work was queued at the last check
	stream   grpc.ServerStreamingServer[tilthv1.WatchJobResponse]
	events   *coordinator.Subscription
	ended    bool // the job's last event was sent
}

// checkHistory refuses a caller that knows another history of the job: after a restored backup, sequence numbers alone
// do not identify events.
func (w *watcher) checkHistory(after *timestamppb.Timestamp) error {
	if after == nil || w.next == 1 {
		return nil
	}
	events, err := w.coordinator.Store().Events(w.jobID, w.next-1, 1)
	if err != nil {
		return StoreError(err)
	}
	if len(events) > 0 && proto.Equal(events[0].GetAt(), after) {
		return nil
	}
	if _, err := w.coordinator.Store().JobRow(w.jobID); errors.Is(err, records.ErrNotFound) {
		return notFound("job", w.jobID)
	}
	return w.Services.status(state.Refuse(state.OtherHistory,
		"event %d of job %q is not the one that you know: the records were restored from a backup; read the job's events again", w.next-1, w.jobID))
}

// catchUp sends the stored events.
func (w *watcher) catchUp() error {
	for {
		// Read the state first: if the job has ended, the events read afterwards are the last.
		row, err := w.coordinator.Store().JobRow(w.jobID)
		if errors.Is(err, records.ErrNotFound) {
			return notFound("job", w.jobID)
		}
		if err != nil {
			return StoreError(err)
		}
		events, err := w.coordinator.Store().Events(w.jobID, w.next, eventsPerRead)
		if err != nil {
			return StoreError(err)
		}
		if err := w.send(events); err != nil {
			return err
		}
		if len(events) > 0 {
			continue
		}
		// A job dropped in the meantime has no events either.
		if _, err := w.coordinator.Store().JobRow(w.jobID); errors.Is(err, records.ErrNotFound) {
			return notFound("job", w.jobID)
		}
		w.ended = records.Final(row.GetJob().GetState())
		return nil
	}
}

// follow sends new events until the job ends or some were missed.
func (w *watcher) follow() error {
	var again <-chan time.Time
	if w.statuses {
		again = time.Tick(statusEvery)
		if err := w.sendStatus(); err != nil {
			return err
		}
	}
	for {
		select {
		case <-again:
			if err := w.sendStatus(); err != nil {
				return err
			}
			continue
		case <-w.events.Wake():
		case <-w.stream.Context().Done():
			return status.FromContextError(w.stream.Context().Err()).Err()
		case <-w.coordinator.Closing():
			return wire.Refuse(codes.Unavailable, wire.ReasonStopping, "tracker is stopping")
		}
		events, missed := w.coordinator.Watches().Take(w.events)
		if len(events) > 0 && events[0].GetSequence() > w.next {
			missed = true
		}
		if missed {
			return nil
		}
		if err := w.send(events); err != nil {
			return err
		}
		if n := len(events); n > 0 && records.Final(events[n-1].GetState().GetState()) {
			w.ended = true
			return nil
		}
	}
}

// messageBytes bounds a message with several events. A message costs as much as a handful of trials, and gRPC's next
// larger buffer size is a megabyte.
const messageBytes = 30 << 10

// send sends the events that are due, batched if the watcher accepts several per message.
func (w *watcher) send(events []*tilthv1.JobEvent) error {
	for len(events) > 0 && events[0].GetSequence() < w.next {
		events = events[1:]
	}
	for len(events) > 0 {
		n := 1
		for size := proto.Size(events[0]); w.several && n < len(events); n++ {
			if size += proto.Size(events[n]); size > messageBytes {
				break
			}
		}
		if err := w.stream.Send(&tilthv1.WatchJobResponse{Event: events[0], More: events[1:n]}); err != nil {
			return err
		}
		w.next = events[n-1].GetSequence() + 1
		events = events[n:]
	}
	return nil
}

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
