package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
)

var (
	discard = slog.New(slog.DiscardHandler)
	away    = status.Error(codes.Unavailable, "away")
)

func TestWaitsDoubleWithJitterUpToTheLongest(t *testing.T) {
	b := retry.Backoff{Policy: retry.Policy{First: time.Second, Max: 10 * time.Second}}
	for range 2 {
		for _, whole := range []time.Duration{1, 2, 4, 8, 10, 10} {
			whole *= time.Second
			if got := b.Next(); got < 0 || got > whole {
				t.Errorf("waits %v, want at most %v", got, whole)
			}
		}
		b.Reset()
	}
}

// TestWaitsAreSpreadOverTheWhole is a regression test: half of each wait was fixed, so clients that lost a tracker
// together returned within half a wait.
func TestWaitsAreSpreadOverTheWhole(t *testing.T) {
	var quarters [4]int
	for range 4000 {
		b := retry.Backoff{Policy: retry.Policy{First: time.Second}}
		quarters[min(int(b.Next()/(250*time.Millisecond)), 3)]++
	}
	for i, n := range quarters {
		if n < 800 || n > 1200 {
			t.Errorf("%d of 4000 waits end in quarter %d", n, i+1)
		}
	}
}

func TestDo(t *testing.T) {
	refused := status.Error(codes.InvalidArgument, "no")
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"at once":              {[]error{nil}, nil},
		"when it is back":      {[]error{away, away, away, nil}, nil},
		"refused":              {[]error{away, refused}, refused},
		"never, until stopped": {nil, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				calls := 0
				err := retry.Do(ctx, discard, retry.Policy{}, "call", func(context.Context) error {
					if calls++; calls > len(c.answers) {
						return away
					}
					return c.answers[calls-1]
				})
				if !errors.Is(err, c.want) || (c.answers != nil && calls != len(c.answers)) {
					t.Errorf("got %v after %d calls", err, calls)
				}
			})
		})
	}
}

func TestAttemptThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := retry.Do(t.Context(), discard, retry.Policy{Try: time.Second}, "call", func(ctx context.Context) error {
			if calls++; calls == 2 {
				return nil
			}
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		})
		if err != nil || calls != 2 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})
}

var often = wire.RefuseUntil(time.Second, codes.ResourceExhausted, wire.ReasonRate, "too often")

func TestRetryHonoursTheServersDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		err := retry.Do(t.Context(), discard, retry.Policy{}, "call", func(context.Context) error {
			if calls++; calls < 4 {
				return often
			}
			return nil
		})
		if passed := time.Since(began); err != nil || passed < 3*time.Second || passed > 7*time.Second {
			t.Errorf("got %v after %v", err, passed)
		}
	})
}

func TestDeferredCallsAreRetriedWithinTheirTime(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		want    error
		calls   int
	}{
		"at once":       {[]error{nil}, nil, 1},
		"later":         {[]error{often, often, nil}, nil, 3},
		"refused":       {[]error{often, away}, away, 2},
		"without limit": {[]error{often, often, often, often, often, often, often, often, often}, often, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				calls := 0
				err := retry.Later(ctx, "", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					calls++
					return c.answers[calls-1]
				})
				if !errors.Is(err, c.want) || c.calls > 0 && calls != c.calls {
					t.Errorf("got %v after %d calls", err, calls)
				}
			})
		})
	}
}
