package tracker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/tilth-dev/tilth/internal/wire"
)

// stopGrace is how long calls under way may take to end when a server stops.
const stopGrace = 3 * time.Second

// NewServer returns a gRPC server with the tracker's services, health and reflection.
func (t *Tracker) NewServer(opts ...grpc.ServerOption) *grpc.Server {
	opts = append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(wire.MaxMessageBytes),
		grpc.MaxSendMsgSize(wire.MaxMessageBytes),
		// Boards behind a NAT vanish without a word; their long polls must not keep their waiters.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}, opts...)
	s := grpc.NewServer(opts...)
	t.Register(s)
	healthv1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	return s
}

// Serve runs the tracker: gRPC on one listener, metrics, health and status over HTTP on another (nil = none), and
// expiry. It returns when all of it has stopped, after ctx ended (nil), or because the store or a listener failed.
func (t *Tracker) Serve(ctx context.Context, rpc, web net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := t.NewServer()
	site := &http.Server{Handler: t.HTTPHandler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 3)
	parts := 2
	run := func(what string, f func() error) {
		err := f()
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		cancel(err)
		done <- err
	}
	go run("tracker", func() error { return t.Run(ctx) })
	go run("serve gRPC", func() error { return server.Serve(rpc) })
	if web != nil {
		parts++
		go run("serve HTTP", func() error {
			if err := site.Serve(web); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	<-ctx.Done()
	t.Close()
	stopServer(server)
	site.Close()
	var all error
	for range parts {
		all = errors.Join(all, <-done)
	}
	return all
}

// stopServer lets calls under way end, but not for long.
func stopServer(s *grpc.Server) {
	timer := time.AfterFunc(stopGrace, s.Stop)
	defer timer.Stop()
	s.GracefulStop()
}
