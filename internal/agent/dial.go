package agent

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
)

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
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true,
		}),
		// A restarted tracker is found within seconds, but not by all agents at once: each delay is random,
		// up to twice the back-off.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 1, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}, opts...)...)
}
