package tracker

import (
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const eventsPerRead = 256

// WatchJob implements tilthv1.JobServiceServer. It reads the stored log only, and waits for it to grow.
func (t *Tracker) WatchJob(req *tilthv1.WatchJobRequest, stream grpc.ServerStreamingServer[tilthv1.WatchJobResponse]) error {
	next := max(1, req.GetFromSequence())
	for {
		// The channel first, then the state, then the events: what comes in between is seen in the next round.
		grown := t.watches.channel(req.GetJobId())
		row, err := t.db.JobRow(req.GetJobId())
		if errors.Is(err, records.ErrNotFound) {
			t.watches.notify(req.GetJobId())
			return notFound("job", req.GetJobId())
		}
		if err != nil {
			return storeError(err)
		}
		events, err := t.db.Events(req.GetJobId(), next, eventsPerRead)
		if err != nil {
			return storeError(err)
		}
		for _, e := range events {
			if err := stream.Send(&tilthv1.WatchJobResponse{Event: e}); err != nil {
				return err
			}
			next = e.GetSequence() + 1
		}
		if len(events) > 0 {
			continue
		}
		if records.Final(row.GetJob().GetState()) {
			// Nothing will ever grow this log, so nothing else would forget its channel.
			t.watches.notify(req.GetJobId())
			return nil
		}
		select {
		case <-grown:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-t.closing:
			return wire.Refuse(codes.Unavailable, wire.ReasonStopping, "tracker is stopping")
		}
	}
}

// watches wakes those who wait for a job's log to grow.
type watches struct {
	mu    sync.Mutex
	byJob map[string]chan struct{}
}

// channel returns what is closed when the job's log next grows.
func (w *watches) channel(jobID string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.byJob[jobID]
	if ch == nil {
		ch = make(chan struct{})
		w.byJob[jobID] = ch
	}
	return ch
}

func (w *watches) notify(jobID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.byJob[jobID]; ch != nil {
		close(ch)
		delete(w.byJob, jobID)
	}
}
