package tracker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/tracker/web"
)

// stopGrace is how long calls in progress may take when a server stops.
const stopGrace = 3 * time.Second

// Buffer sizes for reading and writing messages. Buffers are held only during the transfer, except that TLS keeps a
// read buffer per connection. Most of the thousands of agents are silent at any time; with gRPC's defaults, their
// buffers would dominate the tracker's memory.
const (
	readBufferBytes  = 4 << 10
	writeBufferBytes = 16 << 10
	// headerTableBytes fits the headers common to all calls, and some that vary, such as the timeout.
	headerTableBytes = 1 << 10
)

// newServer returns the gRPC server, which routes calls to the trackers, with health and reflection. Counting is the
// outermost interceptor, so that refused calls count too.
func (h *Host) newServer() *grpc.Server {
	s := grpc.NewServer(slices.Concat([]grpc.ServerOption{grpc.ChainUnaryInterceptor(counted)}, h.guard.ServerOptions(), h.gate.ServerOptions(), []grpc.ServerOption{
		grpc.ReadBufferSize(readBufferBytes), grpc.WriteBufferSize(writeBufferBytes), grpc.HeaderTableSize(headerTableBytes),
	})...)
	services := guarded{connlimit.Registrar(s), s}
	registerDispatching(services)
	healthv1.RegisterHealthServer(services, h.health)
	reflection.Register(services)
	return s
}

// guarded registers the services of a server with a guard.
type guarded struct {
	grpc.ServiceRegistrar
	reflection.ServiceInfoProvider
}

// pageBytes is the memory charged for rendering a page. Pages of a large farm have several megabytes. decodedJSON is
// the ratio of a JSON body's memory, as text and decoded, to its length.
const pageBytes, decodedJSON = 8 << 20, 8

// asker identifies the client of a page for accounting; empty for local clients without authentication.
func asker(r *http.Request) string {
	if by, is := access.From(r.Context()); is {
		return by.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() {
		return ""
	}
	return "host " + host
}

// boundPages limits the memory that pages and the bodies of JSON calls hold.
func boundPages(pages http.Handler, guard *connlimit.Guard) http.Handler {
	return guard.HTTP(pages, func(r *http.Request) (bytes int) {
		if r.Method == http.MethodPost { // of an unknown length at worst
			bytes = decodedJSON * int(min(uint64(r.ContentLength), web.MaxBodyBytes))
		}
		// Health is always served. Streams hold little memory and have limits of their own.
		if r.URL.Path != wire.LivePath && r.URL.Path != wire.ReadyPath && !web.Streams(r) {
			bytes += pageBytes
		}
		return bytes
	}, asker, authz.RefusePage)
}

// site returns an HTTP server that limits its peers.
func (s Security) site(pages http.Handler, log *slog.Logger) *http.Server {
	limits := s.limits().WithDefaults()
	return &http.Server{
		Handler:           pages,
		ReadHeaderTimeout: limits.Handshake, ReadTimeout: limits.Handshake, WriteTimeout: limits.Stall, IdleTimeout: limits.Idle,
		MaxHeaderBytes: int(limits.HeaderBytes),
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug), // noise from scanners is not worth an error
	}
}

// Serve runs the tracker: gRPC; metrics, health and pages over HTTP unless their listener is nil; and periodic work.
// It returns when everything has stopped: nil after ctx ended, or the error of the store or a listener.
func (t *Tracker) Serve(ctx context.Context, rpcListener, webListener net.Listener) error {
	return t.alone().serve(ctx, rpcListener, webListener, map[string]func(context.Context) error{"tracker": t.Run})
}

// alone returns a host of the tracker's shard only.
func (t *Tracker) alone() *Host {
	metrics, is := t.cfg.Registerer.(prometheus.Gatherer)
	if !is {
		metrics = prometheus.NewRegistry()
	}
	h := newHost(HostConfig{
		Security: t.cfg.Security, Shards: max(1, t.cfg.Shard.Count), Logger: t.log, Metrics: prometheus.NewRegistry(), Now: t.cfg.Now,
	})
	h.Add(t, metrics)
	return h
}

// runParts runs parts until ctx ends or one of them fails, and then calls stop. It returns the errors of all.
func runParts(ctx context.Context, parts map[string]func(context.Context) error, stop func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, len(parts))
	for what, part := range parts {
		go func() {
			err := part(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", what, err)
			}
			cancel(err)
			done <- err
		}()
	}
	<-ctx.Done()
	stop()
	var all error
	for range parts {
		all = errors.Join(all, <-done)
	}
	return all
}

// Listen listens on host:port or unix:path. It replaces the socket of a tracker that was killed, but not that of a
// running one.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		lis, err := net.Listen("tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen on %s: it is in use (a running tracker?): stop it or choose another address", addr)
		}
		return lis, err
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: it is in use (a running tracker?): stop it or choose another address", addr)
	}
	// Other kinds of files refuse connections too; do not remove them.
	if info, statErr := os.Stat(path); errors.Is(err, syscall.ECONNREFUSED) && statErr == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	return net.Listen("unix", path)
}
