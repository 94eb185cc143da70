package agent

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
)

// Trackers connects a tracker of a sharded farm to the others. It finds the tracker of a shard like an agent
// does. It is safe for concurrent use.
type Trackers struct {
	conn     *grpc.ClientConn
	resolver *listResolver
}

// DialTrackers connects to the trackers set by Tell.
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

// listScheme is the scheme of a connection to the trackers set by Tell.
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
