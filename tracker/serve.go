package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/authorisation"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/health"
	"github.com/tilth-dev/tilth/tracker/services"
	"github.com/tilth-dev/tilth/tracker/web"
)

// stopGrace is how long calls under way may take to end when a server stops.
const stopGrace = 3 * time.Second

// Sizes of the buffers through which messages are read and written, which are held only while that lasts; but for
// reading, TLS keeps one for each connection. Of thousands of agents most are silent at any time, and with gRPC's own
// sizes their buffers would be much of the tracker's memory.
const (
	readBufferBytes  = 4 << 10
	writeBufferBytes = 16 << 10
	// What each connection remembers of headers: those that every call has, and some that differ, such as how long it
	// may take.
	headerTableBytes = 1 << 10
)

// NewServer returns a gRPC server with the tracker's services, health and reflection, which keeps to the tracker's
// security.
func (t *Tracker) NewServer(opts ...grpc.ServerOption) *grpc.Server {
	return t.newServer(t.newGate(), opts...)
}

func (t *Tracker) newServer(g *authorisation.Gate, opts ...grpc.ServerOption) *grpc.Server {
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

// guarded is a server whose services are registered with a guard.
type guarded struct {
	grpc.ServiceRegistrar
	reflection.ServiceInfoProvider
}

// pageBytes is what making a page may take: those of a large farm have some megabytes.
const pageBytes = 8 << 20

// asker is who asks for a page; empty for this machine's own where nobody is asked who they are.
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

// newSite returns the server of the tracker's pages, which keeps to the tracker's security too.
func (t *Tracker) newSite(g *authorisation.Gate, pages http.Handler) *http.Server {
	return t.cfg.Security.site(g.HTTP(boundPages(pages, t.guard.Load()), web.Public()...), t.log)
}

// boundPages has a guard keep what pages hold within limits.
func boundPages(pages http.Handler, guard *connlimit.Guard) http.Handler {
	bounded := guard.HTTP(pages, pageBytes, asker, authorisation.RefusePage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Health is always told, and streams, which hold next to nothing, have bounds of their own.
		if r.URL.Path == health.LivePath || r.URL.Path == health.ReadyPath || web.Streams(r) {
			pages.ServeHTTP(w, r)
			return
		}
		bounded.ServeHTTP(w, r)
	})
}

// site is a server of pages that keeps peers within limits.
func (s Security) site(pages http.Handler, log *slog.Logger) *http.Server {
	limits := s.limits().WithDefaults()
	return &http.Server{
		Handler:           pages,
		ReadHeaderTimeout: limits.Handshake, ReadTimeout: limits.Handshake, WriteTimeout: limits.Stall, IdleTimeout: limits.Idle,
		MaxHeaderBytes: int(limits.HeaderBytes),
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what scanners send is no news
	}
}

// Serve runs the tracker: gRPC on one listener, metrics, health and status over HTTP on another (nil = none), and
// expiry. It returns when all of it has stopped, after ctx ended (nil), or because the store or a listener failed.
func (t *Tracker) Serve(ctx context.Context, rpc, pages net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := t.newGate()
	pageSite := t.pages(g)
	server, site := t.newServer(g), t.newSite(g, pageSite)
	rpc, pages = t.cfg.Security.guard(rpc, t.refusedPeer), t.cfg.Security.guardWeb(pages, t.refusedPeer)
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
	go run("tell health", func() error {
		services.TellHealth(ctx, t.engine, t.health)
		return nil
	})
	go run("serve gRPC", func() error {
		// Who stops a server before it has begun to serve hears of it here.
		if err := server.Serve(rpc); !errors.Is(err, grpc.ErrServerStopped) {
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

// stopServer lets calls under way end, but not for long.
func stopServer(s *grpc.Server) {
	timer := time.AfterFunc(stopGrace, s.Stop)
	defer timer.Stop()
	s.GracefulStop()
}
