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
	// askAfter is how long a call of all shards may take at one before its tracker is asked whether it is there, and
	// how long after each answer it is asked again.
	askAfter = 2500 * time.Millisecond
	// answerTime is how long a tracker may take over that: as long as over a heartbeat.
	answerTime = 5 * time.Second
)

// answers asks the tracker of a shard whether it is there.
func answers(ctx context.Context, conn *grpc.ClientConn, shard int) error {
	_, err := healthv1.NewHealthClient(conn).Check(toShard(ctx, shard), &healthv1.HealthCheckRequest{})
	return err
}

// silent says whether a tracker that was asked did not answer. One that says that it is asked too often, or that it
// has no room, is there.
func silent(err error) bool {
	_, later := wire.RetryAfter(err)
	return retry.Lost(err) && !later && wire.Reason(err) != wire.ReasonOverloaded
}

// attend does something that the tracker of a shard is to answer, which may take long, and gives it up by end once the
// tracker does not answer at all: one that is stopped takes calls, and holds them for as long as they may take. The
// error passes then, since another tracker takes over.
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
				return ended // as it was meanwhile, in its own words
			}
			return status.Errorf(codes.Unavailable, "the tracker of shard %d does not answer: %s", shard, status.Convert(err).Message())
		}
	}
}
