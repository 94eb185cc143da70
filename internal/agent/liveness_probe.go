package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
)

const (
	// askAfter is how long a call to one of all shards may take before its tracker is checked, and the
	// interval of further checks.
	askAfter = 2500 * time.Millisecond
	// answerTime is the time limit of a check, equal to that of a heartbeat.
	answerTime = 5 * time.Second
)

// answers checks whether the tracker of a shard responds.
func answers(ctx context.Context, conn *grpc.ClientConn, shard int) error {
	_, err := healthv1.NewHealthClient(conn).Check(toShard(ctx, shard), &healthv1.HealthCheckRequest{})
	return err
}

// silent reports whether a tracker did not respond to a check. A tracker that refuses for rate or capacity
// did respond.
func silent(err error) bool {
	_, later := wire.RetryAfter(err)
	return retry.Lost(err) && !later && wire.Reason(err) != wire.ReasonOverloaded
}

// attend runs a possibly long operation that the tracker of a shard should answer, and calls end if the
// tracker stops responding. A stopped process still accepts calls and holds them for as long as they last.
// The error is then transient, because another tracker takes over.
func attend(ctx context.Context, shard int, alive func(context.Context) error, end func(), do func() error) error {
	done, said := make(chan error, 1), make(chan error, 1)
	go func() { done <- do() }()
	ask := time.NewTimer(askAfter)
	defer ask.Stop()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ask.C:
			go func() {
				within, cancel := context.WithTimeout(asking, answerTime)
				defer cancel()
				said <- alive(within)
			}()
		case err := <-said:
			if !silent(err) || ctx.Err() != nil {
				ask.Reset(askAfter)
				continue
			}
			end()
			if ended := <-done; status.Code(ended) != codes.Canceled && !errors.Is(ended, io.EOF) {
				return ended // that error describes the cause better
			}
			return status.Errorf(codes.Unavailable, "the tracker of shard %d does not answer: %s", shard, status.Convert(err).Message())
		}
	}
}
