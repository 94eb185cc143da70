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

// Trackers is a connection of one tracker of a farm of several shards to the others. It finds who has a shard as that
// of an agent does. Its methods may be called from many goroutines.
type Trackers struct {
	conn *grpc.ClientConn
	told *told
}

// DialTrackers makes a connection to trackers that Tell tells of.
func DialTrackers(side credentials.TransportCredentials) (*Trackers, error) {
	told := &told{}
	conn, err := dial(toldScheme+":///shards", nil, takeoverTime, grpc.WithResolvers(told), grpc.WithTransportCredentials(side))
	if err != nil {
		return nil, fmt.Errorf("other trackers: %w", err)
	}
	return &Trackers{conn: conn, told: told}, nil
}

// Tell says where the trackers are now: host:port or unix:PATH each.
func (t *Trackers) Tell(addresses []string) {
	var all []resolver.Address
	for _, address := range addresses {
		all = append(all, resolver.Address{Addr: address})
	}
	t.told.tell(resolver.State{Addresses: all})
}

// Close ends calls under way.
func (t *Trackers) Close() error { return t.conn.Close() }

// Invoke makes a call of one shard, at whichever tracker has it, with an authorization header unless that is empty,
// and with no other.
func (t *Trackers) Invoke(ctx context.Context, shard int, authorization, method string, req, reply any) error {
	header := metadata.MD{}
	if authorization != "" {
		header.Set("authorization", authorization)
	}
	return t.conn.Invoke(toShard(metadata.NewOutgoingContext(ctx, header), shard), method, req, reply)
}

// OverShards makes a call of a farm of n shards where it is to be made: in the shard of its job, or in all, whose
// answers it puts together. invoke makes a call of one shard; -1 = of any. Calls of agents have their own way.
func OverShards(ctx context.Context, n int, method string, req, reply any, invoke func(ctx context.Context, shard int, req, reply any) error) error {
	c := &sharded{shards: &shards{}, n: n, method: method, reply: reply, do: func(ctx context.Context, _ string, req, reply any) error {
		return invoke(ctx, shardIn(ctx), req, reply)
	}}
	return c.call(ctx, req)
}

// toldScheme begins the target of a connection to trackers that are told of.
const toldScheme = "told"

// told resolves to what it was told last.
type told struct {
	mu    sync.Mutex
	state resolver.State
	cc    resolver.ClientConn // nil = the connection is idle
}

// Scheme implements resolver.Builder.
func (*told) Scheme() string { return toldScheme }

// Build implements resolver.Builder.
func (t *told) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cc = cc
	_ = cc.UpdateState(t.state) // that there are none is for calls to find out
	return t, nil
}

func (t *told) tell(state resolver.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
	if t.cc != nil {
		_ = t.cc.UpdateState(state)
	}
}

// ResolveNow implements resolver.Resolver.
func (*told) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (t *told) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cc = nil
}
