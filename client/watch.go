package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Watch calls visit with every event of a job from a sequence number on, in order, each once, and returns nil after the
// job's last. While the tracker is away it tries again until ctx ends, and goes on after the last event it saw. An error
// of visit ends it.
func (c *Client) Watch(ctx context.Context, jobID string, from uint64, visit func(*tilthv1.JobEvent) error) error {
	w := &watch{client: c, jobID: jobID, next: max(1, from), visit: visit}
	var backoff retry.Backoff
	for {
		before := w.next
		err := w.follow(ctx)
		switch {
		case w.failure != nil:
			return w.failure
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !retry.Lost(err):
			return c.explain("watch job "+jobID, err)
		}
		if w.next != before {
			backoff.Reset()
		}
		c.log.Warn("tracker lost, connecting again", "tracker", c.addr, "job", jobID, "error", err)
		if err := backoff.Wait(ctx); err != nil {
			return err
		}
	}
}

// watch is the state of one Watch over all its connections.
type watch struct {
	client  *Client
	jobID   string
	next    uint64
	visit   func(*tilthv1.JobEvent) error
	failure error // of visit, or of a log that is not as promised
}

// follow reads one stream to its end, which is the job's end when it returns nil.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.client.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: w.jobID, FromSequence: w.next})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.failure = w.take(response.GetEvent()); w.failure != nil {
			return w.failure
		}
	}
}

// take passes an event on. One already seen is dropped; a gap would falsify every count made of the events.
func (w *watch) take(event *tilthv1.JobEvent) error {
	switch sequence := event.GetSequence(); {
	case sequence < w.next:
		return nil
	case sequence > w.next:
		return fmt.Errorf("watch job %s: event %d came where %d was due: the tracker's log has a gap", w.jobID, sequence, w.next)
	}
	w.next++
	return w.visit(event)
}
