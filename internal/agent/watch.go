package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// History says whether an error of watching a job means that its events are not those that were visited: begin anew.
func History(err error) bool { return wire.Reason(err) == wire.ReasonHistory }

// Watch calls visit with every event of a job from a sequence number on (0 = the first), stored and live, without gap
// or repetition however often the tracker restarts. It returns nil after the job's last event, and otherwise the error
// of visit, the tracker's refusal, or the cause with which ctx ended. A log that has a gap is an error: it would
// falsify all that is made of the events. So would one that was replaced since, when the tracker's records were
// restored from a backup: for that error History is true.
func Watch(ctx context.Context, conn grpc.ClientConnInterface, log *slog.Logger, jobID string, from uint64, visit func(*tilthv1.JobEvent) error) error {
	return WatchStatus(ctx, conn, log, jobID, from, visit, nil)
}

// WatchStatus is Watch that also calls status, unless it is nil, with how the job stands: once the stored events were
// visited, and whenever it changes. Trackers of older versions do not tell.
func WatchStatus(ctx context.Context, conn grpc.ClientConnInterface, log *slog.Logger, jobID string, from uint64,
	visit func(*tilthv1.JobEvent) error, status func(*tilthv1.JobStatus) error,
) error {
	w := &watcher{jobs: tilthv1.NewJobServiceClient(conn), jobID: jobID, next: max(1, from), visit: visit, status: status}
	for {
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !retry.Lost(err) || w.failed {
			return err
		}
		log.Warn("connection to the job's events lost, trying again", "job", jobID, "next", w.next, "error", err)
		if err := w.backoff.Wait(ctx); err != nil {
			return err
		}
	}
}

type watcher struct {
	jobs    tilthv1.JobServiceClient
	jobID   string
	next    uint64
	after   *timestamppb.Timestamp // when the event before happened; nil while none was seen
	visit   func(*tilthv1.JobEvent) error
	status  func(*tilthv1.JobStatus) error // may be nil
	failed  bool                           // it was visit or status that failed, or the log is not as promised
	backoff retry.Backoff
}

// follow reads one stream until it ends.
func (w *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{
		JobId: w.jobID, FromSequence: w.next, After: w.after, Several: true, Status: w.status != nil,
	})
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.backoff.Reset()
		if err := w.takeAll(r); err != nil {
			w.failed = true
			return err
		}
	}
}

func (w *watcher) takeAll(r *tilthv1.WatchJobResponse) error {
	if r.GetEvent() == nil && r.GetStatus() != nil && w.status != nil {
		return w.status(r.GetStatus())
	}
	err := w.take(r.GetEvent())
	for _, event := range r.GetMore() {
		if err != nil {
			return err
		}
		err = w.take(event)
	}
	return err
}

// take passes an event on, unless it was seen already.
func (w *watcher) take(event *tilthv1.JobEvent) error {
	switch sequence := event.GetSequence(); {
	case sequence < w.next:
		return nil
	case sequence > w.next:
		return fmt.Errorf("got event %d, want %d: the tracker's log has a gap", sequence, w.next)
	}
	w.next, w.after = w.next+1, event.GetAt()
	return w.visit(event)
}
