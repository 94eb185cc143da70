package farm

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// link observes the calls of an agent to its tracker.
type link struct {
	calls     *prometheus.CounterVec
	heartbeat prometheus.Histogram
	connected prometheus.GaugeFunc
	state     *linkState
}

// linkState is the result of the last call that renews the session.
type linkState struct {
	mu   sync.Mutex
	last error
}

var errNotJoined = errors.New("no tracker has let the agent join yet")

func newLink() link {
	state := &linkState{last: errNotJoined}
	return link{
		state: state,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tilth_agent_calls_total", Help: "Calls to the tracker, streams not counted, by method and gRPC status.",
		}, []string{"call", "code"}),
		heartbeat: histogram("tilth_agent_heartbeat_seconds", "Time until the tracker answered a heartbeat.", 0.0005, 16),
		connected: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tilth_agent_connected", Help: "1 while the tracker knows the agent's session, by its last answer; 0 otherwise.",
		}, func() float64 {
			if state.get() == nil {
				return 1
			}
			return 0
		}),
	}
}

// Ready returns why the agent cannot get work, or nil if its last heartbeat succeeded.
func (l link) Ready(context.Context) error { return l.state.get() }

// DialOption returns an option that counts the calls of a connection.
func (l link) DialOption() grpc.DialOption { return grpc.WithChainUnaryInterceptor(l.count) }

func (l link) count(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := next(ctx, method, req, reply, conn, opts...)
	l.calls.WithLabelValues(path.Base(method), status.Code(err).String()).Inc()
	switch method {
	case tilthv1.AgentService_Heartbeat_FullMethodName:
		l.heartbeat.Observe(time.Since(began).Seconds())
		l.state.set(err)
	case tilthv1.AgentService_Join_FullMethodName:
		l.state.set(err)
	case tilthv1.AgentService_Leave_FullMethodName:
		l.state.set(errLeft)
	}
	return err
}

var errLeft = errors.New("the agent has left the tracker")

func (s *linkState) get() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// set records the result of a call. The tracker's address only goes to the log, not to the health page.
func (s *linkState) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && status.Code(err) != 0 && !errors.Is(err, errLeft) {
		err = errors.New("the tracker does not answer as it should: " + status.Code(err).String() + ", see the log")
	}
	s.last = err
}
