package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// History reports whether an error of watching a job means that its events were replaced, so that the caller
// must start over.
func History(err error) bool { return wire.Reason(err) == wire.ReasonHistory }

// Watch calls visit with every event of a job from a sequence number on (0 is the first), stored and live, without
// gaps or repeats across restarts of the tracker. It also calls status, if not nil, with the job's status: after the
// stored events and whenever it changes. Older trackers send none. It returns nil after the job's last event, or else
// the error of visit or status, the tracker's refusal, or the cause of ctx. It returns an error if the log has a gap,
// or if a restored backup replaced the events (then History reports true), because both would invalidate everything
// derived from the events. It takes over req.
func Watch(ctx context.Context, conn grpc.ClientConnInterface, log *slog.Logger, req *tilthv1.WatchJobRequest,
	visit func(*tilthv1.JobEvent) error, status func(*tilthv1.JobStatus) error,
) error {
	w := &watcher{jobs: tilthv1.NewJobServiceClient(conn), req: req, visit: visit, status: status}
	req.FromSequence, req.Several, req.Status = max(1, req.GetFromSequence()), true, status != nil
	for {
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errRenew) {
			continue
		}
		if !retry.Lost(err) || w.failed {
			return err
		}
		log.Warn("connection to the job's events lost, trying again", "job", req.GetJobId(), "next", req.GetFromSequence(), "error", err)
		if err := w.backoff.Wait(ctx); err != nil {
			return err
		}
	}
}

type watcher struct {
	jobs    tilthv1.JobServiceClient
	req     *tilthv1.WatchJobRequest // for the next event
	visit   func(*tilthv1.JobEvent) error
	status  func(*tilthv1.JobStatus) error // may be nil
	failed  bool                           // visit or status failed, or the log is inconsistent
	backoff retry.Backoff
}

// renewEvery is how often the client of an attached job begins a new stream, which proves that it is there.
const renewEvery = time.Second

// errRenew ends a stream that the next one replaces.
var errRenew = errors.New("the stream is renewed")

// follow reads one stream until it ends. That of an attached job's client ends some time after its first message.
func (w *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var renew *time.Timer
	stream, err := w.jobs.WatchJob(ctx, w.req)
	if err != nil {
		return err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && errors.Is(context.Cause(ctx), errRenew) {
			return errRenew
		}
		if err != nil {
			return err
		}
		if w.req.GetAttached() && renew == nil {
			renew = time.AfterFunc(renewEvery, func() { cancel(errRenew) })
			defer renew.Stop()
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

// take passes on an event unless it was seen before.
func (w *watcher) take(event *tilthv1.JobEvent) error {
	switch sequence := event.GetSequence(); {
	case sequence < w.req.GetFromSequence():
		return nil
	case sequence > w.req.GetFromSequence():
		return fmt.Errorf("got event %d, want %d: the tracker's log has a gap", sequence, w.req.GetFromSequence())
	}
	w.req.FromSequence, w.req.After = event.GetSequence()+1, event.GetAt()
	return w.visit(event)
}
