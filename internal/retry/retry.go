package retry

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
)

// Policy says how long to wait between attempts.
type Policy struct {
	// First wait, at most; each further one is twice as long, up to Max. 0 = 100 ms.
	First time.Duration
	// Longest wait; 0 = 5 s.
	Max time.Duration
	// Try bounds one attempt; 0 = 30 s.
	Try time.Duration
}

// Backoff is the waiting between the attempts of one undertaking. Its zero value follows the zero Policy.
type Backoff struct {
	Policy Policy
	failed int
}

// Next returns how long to wait now: any part of a wait that doubles with every call, so that the many who lost the
// same tracker at once do not come back at once.
func (b *Backoff) Next() time.Duration {
	first, longest := b.Policy.First, b.Policy.Max
	if first == 0 {
		first = 100 * time.Millisecond
	}
	if longest == 0 {
		longest = 5 * time.Second
	}
	wait := longest
	if b.failed < 16 {
		wait = min(first<<b.failed, longest)
		b.failed++
	}
	return rand.N(wait + 1)
}

// Reset begins anew with the first wait, after a success.
func (b *Backoff) Reset() { b.failed = 0 }

// Wait waits for the next attempt, or until ctx ends and returns its cause.
func (b *Backoff) Wait(ctx context.Context) error {
	return Sleep(ctx, b.Next())
}

// Sleep waits for d, or until ctx ends and returns its cause.
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

// Lost says whether err means that the other side could not be reached or did not answer, so that what was asked may
// or may not have happened and may be asked again, or that it is to be asked again later.
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

// Do calls until the call succeeds, fails for good (an error that is not Lost), or ctx ends. Each attempt has a
// context of its own, bounded by the policy.
func Do(ctx context.Context, log *slog.Logger, p Policy, what string, call func(context.Context) error) error {
	limit := p.Try
	if limit == 0 {
		limit = 30 * time.Second
	}
	backoff := Backoff{Policy: p}
	var complaints Complaints
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
			log.Warn("call failed, trying again", "call", what, "times", int(complaints), "error", wire.Words(err))
		}
		if err := Sleep(ctx, max(backoff.Next(), after(err))); err != nil {
			return err
		}
	}
}

// after is how long to wait for what the other side says to try again later: not less than it says, and not all at
// once.
func after(err error) time.Duration {
	wait, later := wire.RetryAfter(err)
	if !later {
		return 0
	}
	return wait + rand.N(wait+time.Millisecond)
}

// Later is a client's interceptor that makes calls again which the other side put off, when it said, for as long as
// their contexts allow.
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
