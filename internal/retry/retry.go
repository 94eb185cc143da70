package retry

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Policy configures the delays between attempts.
type Policy struct {
	// First bounds the first delay; each further bound is twice as large, up to Max. 0 means 100 ms.
	First time.Duration
	// Max is the largest bound; 0 means 5 s.
	Max time.Duration
	// Try bounds one attempt; 0 means 30 s.
	Try time.Duration
}

// Backoff computes the delays between attempts. Its zero value follows the zero Policy.
type Backoff struct {
	Policy Policy
	failed int
}

// Next returns a random delay below a bound that doubles with each call, so that clients that lost the same
// tracker do not return at the same time.
func (b *Backoff) Next() time.Duration {
	first, longest := b.Policy.First, b.Policy.Max
	first = cmp.Or(first, 100*time.Millisecond)
	longest = cmp.Or(longest, 5*time.Second)
	wait := longest
	if b.failed < 16 {
		wait = min(first<<b.failed, longest)
		b.failed++
	}
	return rand.N(wait + 1)
}

// Reset restarts with the first delay, after a success.
func (b *Backoff) Reset() { b.failed = 0 }

// Wait waits for the next attempt. If ctx ends first, it returns the cause.
func (b *Backoff) Wait(ctx context.Context) error {
	return Sleep(ctx, b.Next())
}

// Sleep waits for d. If ctx ends first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Lost reports whether a call may be retried: the other side was unreachable, did not answer (so that the
// call may or may not have taken effect), or asked to retry later.
func Lost(err error) bool {
	if _, later := wire.RetryAfter(err); later {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

// Do calls until success, a permanent error (not Lost), or the end of ctx. The policy bounds each attempt's context.
func Do(ctx context.Context, log *slog.Logger, p Policy, what string, call func(context.Context) error) error {
	limit := cmp.Or(p.Try, 30*time.Second)
	backoff := Backoff{Policy: p}
	var complaints RepeatedErrors
	for {
		try, cancel := context.WithTimeout(ctx, limit)
		err := call(try)
		cancel()
		if err == nil || !Lost(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if complaints.Due() {
			log.Warn("call failed, trying again", "call", what, "times", int(complaints), "error", wire.ErrorText(err))
		}
		if err := Sleep(ctx, max(backoff.Next(), after(err))); err != nil {
			return err
		}
	}
}

// after returns the delay that the other side requested, plus jitter.
func after(err error) time.Duration {
	wait, later := wire.RetryAfter(err)
	if !later {
		return 0
	}
	return wait + rand.N(wait+time.Millisecond)
}

// Later is a client interceptor that retries deferred calls at the requested time, for as long as their
// contexts allow.
func Later(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	for {
		err := invoke(ctx, method, req, reply, conn, opts...)
		wait := after(err)
		if deadline, bounded := ctx.Deadline(); wait == 0 || bounded && time.Until(deadline) < wait {
			return err
		}
		if Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// RepeatedErrors counts repeated complaints about a persistent condition, such as an unreachable server.
type RepeatedErrors int

// rarest is the maximum interval, in complaints, between logged ones.
const rarest = 256

// Due reports whether to log another complaint: the first, and then at increasing intervals.
func (c *RepeatedErrors) Due() bool {
	*c++
	n := int(*c)
	return n&(n-1) == 0 && n <= rarest || n%rarest == 0
}
