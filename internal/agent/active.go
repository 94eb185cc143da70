package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
)

// activePolicy is the name of the load balancing policy for connections to trackers. It connects to all
// trackers, sends calls to the one that serves, and moves on if that one stands by or does not answer in
// time. gRPC's own health checks would need a stream per agent and give callers less information.
const activePolicy = "tilth_active"

// init registers the policy, which gRPC looks up by name in a process-wide table.
func init() {
	balancer.Register(activeBuilder{base.NewBalancerBuilder(activePolicy, nil, base.Config{})})
}

type activeBuilder struct{ balancer.Builder }

// Build implements balancer.Builder. Each connection keeps its own state.
func (activeBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return base.NewBalancerBuilder(activePolicy, &active{seats: map[int]*seat{}}, base.Config{}).Build(cc, opts)
}

// active holds the state of a connection, by the shard of calls (-1 for calls without a shard).
type active struct {
	mu    sync.Mutex
	seats map[int]*seat
	times uint64
}

// seat holds the state of the trackers that may serve a shard, by address.
type seat struct {
	serving string // the address that calls go to; empty if unknown
	// turnedAway holds the sequence number of each tracker's latest refusal, without those that served or
	// reconnected since.
	turnedAway map[string]uint64
}

// seat returns the seat of a shard. The caller must hold the lock.
func (a *active) seat(shard int) *seat {
	s := a.seats[shard]
	if s == nil {
		s = &seat{turnedAway: map[string]uint64{}}
		a.seats[shard] = s
	}
	return s
}

// Build implements base.PickerBuilder.
func (a *active) Build(info base.PickerBuildInfo) balancer.Picker {
	if len(info.ReadySCs) == 0 {
		return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	p := &picker{active: a, ready: map[string]balancer.SubConn{}}
	for conn, of := range info.ReadySCs {
		p.ready[of.Address.Addr] = conn
	}
	p.addresses = slices.Sorted(maps.Keys(p.ready))
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seats {
		maps.DeleteFunc(s.turnedAway, func(address string, _ uint64) bool { return p.ready[address] == nil })
	}
	return p
}

// picker picks among connected trackers.
type picker struct {
	*active
	ready     map[string]balancer.SubConn
	addresses []string // sorted
}

// Pick implements balancer.Picker. It returns the serving tracker, or the one whose refusal is oldest.
func (p *picker) Pick(of balancer.PickInfo) (balancer.PickResult, error) {
	shard := shardIn(of.Ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seat(shard)
	at := s.serving
	if p.ready[at] == nil {
		at = slices.MinFunc(p.addresses, func(x, y string) int { return int(s.turnedAway[x]) - int(s.turnedAway[y]) })
	}
	return balancer.PickResult{SubConn: p.ready[at], Done: func(done balancer.DoneInfo) { p.done(shard, at, done.Err) }}, nil
}

// done updates the state from the result of a call.
func (a *active) done(shard int, at string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.seat(shard)
	switch {
	case standsBy(err) || status.Code(err) == codes.DeadlineExceeded, wire.Reason(err) == wire.ReasonStoreAway:
		// A tracker without its database may have lost it to another one without knowing.
		a.times++
		s.turnedAway[at] = a.times
		if s.serving == at {
			s.serving = ""
		}
	case err == nil || wire.Reason(err) != "": // the tracker's own words
		delete(s.turnedAway, at)
		s.serving = at
	}
}

func standsBy(err error) bool { return wire.Reason(err) == wire.ReasonStandby }

const (
	// connectTime is how long a call refused by a standby tracker is retried, because a connection to another
	// address may be pending.
	connectTime = 500 * time.Millisecond
	// takeoverTime replaces connectTime if several trackers are known, because one is about to take over.
	takeoverTime = 5 * time.Second
	// askEvery is the pause after all trackers have refused.
	askEvery = 50 * time.Millisecond
)

// askNext returns a client interceptor that retries calls refused by a standby tracker, immediately at the
// next tracker, until patience is over.
func askNext(patience time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		patience := patience
		if shardIn(ctx) >= 0 { // a farm with several shards has several trackers
			patience = takeoverTime
		}
		asked := map[string]bool{}
		for begin := time.Now(); ; {
			var by peer.Peer
			err := invoke(ctx, method, req, reply, conn, append(slices.Clip(opts), grpc.Peer(&by))...)
			if !standsBy(err) || time.Since(begin) > patience {
				return err
			}
			if at := fmt.Sprint(by.Addr); !asked[at] {
				asked[at] = true
				continue
			}
			if retry.Sleep(ctx, askEvery) != nil {
				return err
			}
			clear(asked)
		}
	}
}
