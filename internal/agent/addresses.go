package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
)

// trackersScheme is the scheme of targets that are lists of addresses.
const trackersScheme = "trackers"

// addresses resolves a list of addresses, each in the way gRPC would resolve it alone: names by DNS, and
// certificates checked per address.
type addresses struct{}

// Scheme implements resolver.Builder.
func (addresses) Scheme() string { return trackersScheme }

// OverrideAuthority implements resolver.AuthorityOverrider. Each address of a list has its own.
func (addresses) OverrideAuthority(resolver.Target) string { return "tracker" }

// Build implements resolver.Builder.
func (addresses) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	list := &resolved{cc: cc}
	for _, address := range wire.Addresses(target.Endpoint()) {
		list.parts = append(list.parts, &part{ClientConn: cc, list: list, address: address})
	}
	for _, p := range list.parts {
		if err := p.build(opts); err != nil {
			list.Close()
			return nil, fmt.Errorf("tracker address %q: %w", p.address, err)
		}
	}
	return list, nil
}

// resolved is the state of a resolved list.
type resolved struct {
	cc    resolver.ClientConn
	parts []*part
	mu    sync.Mutex // guards the results of the parts
}

// ResolveNow implements resolver.Resolver.
func (l *resolved) ResolveNow(opts resolver.ResolveNowOptions) {
	for _, p := range l.parts {
		p.resolver.ResolveNow(opts)
	}
}

// Close implements resolver.Resolver.
func (l *resolved) Close() {
	for _, p := range l.parts {
		if p.resolver != nil {
			p.resolver.Close()
		}
	}
}

// report reports the addresses once every part has a result; earlier, calls would only see some of them. It
// reports an error only if no part has an address.
func (l *resolved) report() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []resolver.Address
	var failed []error
	for _, p := range l.parts {
		all = append(all, p.found...)
		switch {
		case p.failed != nil:
			failed = append(failed, p.failed)
		case len(p.found) == 0:
			return nil
		}
	}
	if len(all) > 0 {
		return l.cc.UpdateState(resolver.State{Addresses: all})
	}
	if len(failed) == len(l.parts) {
		l.cc.ReportError(errors.Join(failed...))
	}
	return nil
}

// part is one address of a list, and the connection that its resolver updates.
type part struct {
	resolver.ClientConn
	list     *resolved
	address  string
	resolver resolver.Resolver
	found    []resolver.Address
	failed   error
}

func (p *part) build(opts resolver.BuildOptions) error {
	scheme, text := "dns", "dns:///"+p.address
	if strings.HasPrefix(p.address, "unix:") {
		scheme, text = "unix", p.address
	}
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	p.resolver, err = resolver.Get(scheme).Build(resolver.Target{URL: *u}, p, opts)
	return err
}

// UpdateState implements resolver.ClientConn.
func (p *part) UpdateState(s resolver.State) error {
	found := slices.Clone(s.Addresses)
	for _, e := range s.Endpoints {
		if len(s.Addresses) == 0 {
			found = append(found, e.Addresses...)
		}
	}
	for i := range found {
		if found[i].ServerName == "" {
			found[i].ServerName = p.address
		}
	}
	p.list.mu.Lock()
	p.found, p.failed = found, nil
	p.list.mu.Unlock()
	return p.list.report()
}

// ReportError implements resolver.ClientConn. Earlier addresses remain valid.
func (p *part) ReportError(err error) {
	p.list.mu.Lock()
	p.failed = err
	p.list.mu.Unlock()
	_ = p.list.report()
}

// Dial connects to a tracker at host:port or unix:path, or to a comma-separated list of trackers, of which
// one serves and the others stand by, or each serves some of the farm's shards. It connects on first use, and
// again whenever the tracker returns.
func Dial(addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	target, patience := addr, connectTime
	if scheme, _, is := strings.Cut(addr, ":///"); !is || scheme == "" { // not one of gRPC's own resolvers
		if err := wire.CheckAddresses(addr); err != nil {
			return nil, fmt.Errorf("tracker: %w", err)
		}
		if len(wire.Addresses(addr)) > 1 {
			target, patience = trackersScheme+":///"+addr, takeoverTime
		}
	}
	conn, err := dial(target, &shards{several: patience == takeoverTime, alive: answers}, patience, append([]grpc.DialOption{grpc.WithResolvers(addresses{})}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("tracker address %q: %w", addr, err)
	}
	return conn, nil
}

// dial returns a connection that routes calls to their shards. of is nil if all calls name their shard.
func dial(target string, of *shards, patience time.Duration, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	unary := []grpc.UnaryClientInterceptor{checkLength, retry.Later, askNext(patience)}
	streams := []grpc.StreamClientInterceptor{checkLengths, retry.LaterStream}
	if of != nil {
		unary, streams = append([]grpc.UnaryClientInterceptor{of.unary}, unary...), append([]grpc.StreamClientInterceptor{of.stream}, streams...)
	}
	return grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithChainUnaryInterceptor(unary...), grpc.WithChainStreamInterceptor(streams...),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + activePolicy + `": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(wire.MaxMessageBytes), grpc.MaxCallSendMsgSize(wire.MaxMessageBytes)),
		grpc.WithInitialWindowSize(wire.WindowBytes), grpc.WithInitialConnWindowSize(wire.WindowBytes),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		// A restarted tracker is found within seconds, but not by all agents at once: each delay is random,
		// up to twice the back-off.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 1, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}, opts...)...)
}

// Trackers connects a tracker of a sharded farm to the others. It finds the tracker of a shard like an agent
// does. It is safe for concurrent use.
type Trackers struct {
	conn     *grpc.ClientConn
	resolver *listResolver
}

// DialTrackers connects to the trackers set by SetAddresses.
func DialTrackers(side credentials.TransportCredentials) (*Trackers, error) {
	shardResolver := &listResolver{}
	conn, err := dial(listScheme+":///shards", nil, takeoverTime, grpc.WithResolvers(shardResolver), grpc.WithTransportCredentials(side))
	if err != nil {
		return nil, fmt.Errorf("other trackers: %w", err)
	}
	return &Trackers{conn: conn, resolver: shardResolver}, nil
}

// SetAddresses sets the addresses of the trackers, each host:port or unix:PATH.
func (t *Trackers) SetAddresses(addresses []string) {
	var all []resolver.Address
	for _, address := range addresses {
		all = append(all, resolver.Address{Addr: address})
	}
	t.resolver.tell(resolver.State{Addresses: all})
}

// Close cancels calls in progress.
func (t *Trackers) Close() error { return t.conn.Close() }

// Invoke calls the tracker of a shard, with the given authorization header or none.
func (t *Trackers) Invoke(ctx context.Context, shard int, authorization, method string, req, reply any) error {
	header := metadata.MD{}
	if authorization != "" {
		header.Set("authorization", authorization)
	}
	return t.conn.Invoke(toShard(metadata.NewOutgoingContext(ctx, header), shard), method, req, reply)
}

// CallShards routes a call in a farm with n shards: to the shard of its job, or to all of them, and then
// merges the responses. invoke calls one shard, or any shard for -1. Calls of agents are routed differently.
func CallShards(ctx context.Context, n int, method string, req, reply any, invoke func(ctx context.Context, shard int, req, reply any) error) error {
	c := &sharded{shards: &shards{}, n: n, method: method, reply: reply, do: func(ctx context.Context, _ string, req, reply any) error {
		return invoke(ctx, shardIn(ctx), req, reply)
	}}
	return c.call(ctx, req)
}

// listScheme is the scheme of a connection to the trackers set by SetAddresses.
const listScheme = "shards"

// listResolver resolves to the addresses set last.
type listResolver struct {
	mu    sync.Mutex
	state resolver.State
	cc    resolver.ClientConn // nil while the connection is idle
}

// Scheme implements resolver.Builder.
func (*listResolver) Scheme() string { return listScheme }

// Build implements resolver.Builder.
func (t *listResolver) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cc = cc
	_ = cc.UpdateState(t.state) // calls report that the list is empty
	return t, nil
}

func (t *listResolver) tell(state resolver.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
	if t.cc != nil {
		_ = t.cc.UpdateState(state)
	}
}

// ResolveNow implements resolver.Resolver.
func (*listResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (t *listResolver) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cc = nil
}

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
