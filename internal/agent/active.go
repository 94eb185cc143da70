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

// activePolicy is the name of the load balancing policy of connections to trackers: calls go to the one that serves.
// It is connected to all, and goes on with the next where one says that it stands by, or does not answer in time.
// gRPC's own health checks would take a stream of each agent, and tell callers less.
const activePolicy = "tilth_active"

// gRPC finds policies by their names, in a table of the process.
func init() {
	balancer.Register(activeBuilder{base.NewBalancerBuilder(activePolicy, nil, base.Config{})})
}

type activeBuilder struct{ balancer.Builder }

// Build implements balancer.Builder. Each connection remembers for itself which tracker serves.
func (activeBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return base.NewBalancerBuilder(activePolicy, &active{seats: map[int]*seat{}}, base.Config{}).Build(cc, opts)
}

// active is what a connection knows of trackers, by the shards that calls are for (-1 = they name none).
type active struct {
	mu    sync.Mutex
	seats map[int]*seat
	times uint64
}

// seat is what is known of the trackers that may serve a shard, by address.
type seat struct {
	serving string // the address that calls go to; empty = none is known
	// turnedAway numbers the last time that each did not serve; who served since, or has connected anew, is not in it.
	turnedAway map[string]uint64
}

// seat is that of a shard. The caller holds the lock.
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

// picker picks among the trackers that are connected.
type picker struct {
	*active
	ready     map[string]balancer.SubConn
	addresses []string // in order
}

// Pick implements balancer.Picker: the tracker that serves, or the one that was not asked for the longest time.
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

// done learns from how a call ended.
func (a *active) done(shard int, at string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.seat(shard)
	switch {
	case standsBy(err) || status.Code(err) == codes.DeadlineExceeded, wire.Reason(err) == wire.ReasonStoreAway:
		// One that does not reach its database may have lost it to another one, of which it does not hear.
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
	// connectTime is for how long a call that a tracker refused since it stands by is made again: there may be another
	// address, to which there is no connection yet.
	connectTime = 500 * time.Millisecond
	// takeoverTime is the same where several trackers are known of: one of them is about to take over.
	takeoverTime = 5 * time.Second
	// askEvery is the pause once all have refused.
	askEvery = 50 * time.Millisecond
)

// askNext is a client's interceptor that makes a call again which a tracker refused since it stands by: at the next
// one at once, and for some time.
func askNext(patience time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		patience := patience
		if shardIn(ctx) >= 0 { // a farm of several shards has several trackers, or is about to
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
