package agent_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// outage is a tracker that is unreachable for days. It then refuses an expired token, and with a new token it does
// not know the session.
type outage struct {
	grpc.ClientConnInterface
	began          time.Time
	away, expired  time.Duration // start times
	back           time.Duration
	mu             sync.Mutex
	joined, called int
}

func (o *outage) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.called++
	switch since := time.Since(o.began); {
	case since >= o.back && o.joined == 1 && method != tilthv1.AgentService_Join_FullMethodName:
		return wire.Refuse(codes.NotFound, wire.ReasonVoidSession, "no such session")
	case since >= o.expired && since < o.back:
		return status.Error(codes.Unauthenticated, "the token has expired")
	case since >= o.away && since < o.expired:
		return status.Error(codes.Unavailable, "no route to host")
	}
	switch method {
	case tilthv1.AgentService_Join_FullMethodName:
		o.joined++
		reply.(*tilthv1.JoinResponse).Session = "session"
		reply.(*tilthv1.JoinResponse).HeartbeatInterval = durationpb.New(5 * time.Second)
	case tilthv1.AgentService_LeaseWork_FullMethodName:
		o.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(args.(*tilthv1.LeaseWorkRequest).GetWait().AsDuration()):
		}
		o.mu.Lock()
		return ctx.Err()
	}
	return nil
}

// TestAgentThatIsOfflineForDaysComesBack with a token that expired meanwhile. It must not flood the restarted
// tracker or its own log.
func TestAgentThatIsOfflineForDaysComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		o := &outage{began: time.Now(), away: time.Hour, expired: 5 * day, back: 6 * day}
		ctx, cancel := context.WithTimeout(t.Context(), 6*day+time.Hour)
		defer cancel()
		var log strings.Builder
		err := agent.Run(ctx, agent.Config{
			Conn: o, Spec: &tilthv1.AgentSpec{Name: "board", Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER}, Slots: 1,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil || o.joined != 2 {
			t.Errorf("joined %d times: %v", o.joined, err)
		}
		if maxCalls := int(6 * day / time.Second); o.called > maxCalls {
			t.Errorf("%d calls in %v, want at most one a second", o.called, 6*day)
		}
		if lines := strings.Count(log.String(), "\n"); lines > 2000 {
			t.Errorf("%d lines in the log", lines)
		}
	})
}
