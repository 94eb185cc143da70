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

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/tracker/rpc"
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
	// Header table of each connection: the headers common to all calls, and some that vary, such as the timeout.
	headerTableBytes = 1 << 10
)

// NewServer returns a gRPC server with the tracker's services, health and reflection, protected by the tracker's
// security settings.
func (t *Tracker) NewServer(opts ...grpc.ServerOption) *grpc.Server {
	return t.newServer(t.newGate(), opts...)
}

func (t *Tracker) newServer(g *authz.Gate, opts ...grpc.ServerOption) *grpc.Server {
	keeper := t.newGuard(g)
	t.guard.Store(keeper)
	count := []grpc.ServerOption{grpc.ChainUnaryInterceptor(t.metrics.Count)} // outermost, so that refused calls count too
	own := slices.Concat(count, keeper.ServerOptions(), g.ServerOptions())
	own = append(own, grpc.ReadBufferSize(readBufferBytes), grpc.WriteBufferSize(writeBufferBytes), grpc.HeaderTableSize(headerTableBytes))
	s := grpc.NewServer(append(own, opts...)...)
	services := guarded{connlimit.Registrar(s), s}
	t.Register(services)
	healthv1.RegisterHealthServer(services, t.health)
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

// newSite returns the HTTP server of the pages, protected by the tracker's security settings.
func (t *Tracker) newSite(g *authz.Gate, pages http.Handler) *http.Server {
	return t.cfg.Security.site(g.HTTP(boundPages(pages, t.guard.Load()), web.Public()...), t.log)
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

// Serve runs the tracker: gRPC on calls; metrics, health and pages over HTTP on pages unless nil; and periodic work.
// It returns when everything has stopped: nil after ctx ended, or the error of the store or a listener.
func (t *Tracker) Serve(ctx context.Context, calls, pages net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := t.newGate()
	pageSite := t.pages(g)
	server, site := t.newServer(g), t.newSite(g, pageSite)
	refused := refusals(t.log, t.metrics.RefusedPeer)
	calls, pages = t.cfg.Security.guard(calls, refused), t.cfg.Security.guardWeb(pages, refused)
	done := make(chan error, 5)
	parts := 3
	run := func(what string, f func() error) {
		err := f()
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		cancel(err)
		done <- err
	}
	go run("tracker", func() error { return t.Run(ctx) })
	go run("serve health", func() error {
		rpc.ServeHealth(ctx, t.coordinator, t.health, t.log)
		return nil
	})
	go run("serve gRPC", func() error {
		// A server stopped before it began to serve returns here.
		if err := server.Serve(calls); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	})
	if pages != nil {
		parts += 2
		go run("note metrics", func() error {
			pageSite.Run(ctx)
			return nil
		})
		go run("serve HTTP", func() error {
			if err := site.Serve(pages); !errors.Is(err, http.ErrServerClosed) {
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

// stopServer stops gracefully within stopGrace.
func stopServer(s *grpc.Server) {
	timer := time.AfterFunc(stopGrace, s.Stop)
	defer timer.Stop()
	s.GracefulStop()
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
