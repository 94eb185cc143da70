package tracker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/tracker/telemetry"
)

// errStandby is the answer of a tracker on standby.
var errStandby = errors.New("this tracker is on standby: another one has the database")

// Standby answers at the addresses of a tracker that waits for its database. It refuses every call with UNAVAILABLE,
// so that callers try their next address. Over HTTP it is alive but not ready.
type Standby struct {
	server *grpc.Server
	site   *http.Server
	parts  int
	served chan error
	why    waiting
}

// StandBy starts answering: calls on rpc, pages on web unless nil. It registers its metrics with the registry. The
// caller must call Close.
func StandBy(s Security, log *slog.Logger, metrics *prometheus.Registry, rpc, web net.Listener) (*Standby, error) {
	if err := telemetry.Active(metrics, false); err != nil {
		return nil, fmt.Errorf("register the metrics of a standby tracker: %w", err)
	}
	by := &Standby{parts: 1, served: make(chan error, 2)}
	by.server, by.site = s.refusingServer(by.why.why), s.standbySite(by.why.why, log, metrics)
	refused := func(net.Addr, error) {}
	rpc, web = s.guard(rpc, refused), s.guardWeb(web, refused)
	go func() { by.served <- by.server.Serve(rpc) }()
	if web != nil {
		by.parts++
		go func() { by.served <- by.site.Serve(web) }()
	}
	return by, nil
}

// SetWaiting sets the dependency that the tracker waits for; nil means that another tracker has the database.
func (by *Standby) SetWaiting(away error) { by.why.set(away) }

// waiting holds the dependency that a tracker waits for.
type waiting struct{ away atomic.Pointer[error] }

func (w *waiting) set(away error) { w.away.Store(&away) }

// why returns the error for callers.
func (w *waiting) why() error {
	if away := w.away.Load(); away != nil && *away != nil {
		return fmt.Errorf("standby: %w", *away)
	}
	return errStandby
}

// Close stops the servers and closes both listeners.
func (by *Standby) Close() (err error) {
	by.server.Stop() // no call takes long
	by.site.Close()
	for range by.parts {
		if failed := <-by.served; !errors.Is(failed, grpc.ErrServerStopped) && !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// refusingServer returns a server that refuses every call, with the reason, before it reads the request.
func (s Security) refusingServer(why func() error) *grpc.Server {
	var config *tls.Config
	if s.TLS != nil {
		config = s.TLS.Config("h2")
	}
	l := s.limits().WithDefaults()
	return grpc.NewServer(
		grpc.Creds(connlimit.Credentials(config)),
		grpc.MaxHeaderListSize(l.HeaderBytes), grpc.MaxConcurrentStreams(l.Streams), grpc.ConnectionTimeout(l.Handshake),
		grpc.ReadBufferSize(readBufferBytes), grpc.WriteBufferSize(readBufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: l.Idle, MaxConnectionAge: l.Age, Time: l.Ping, Timeout: l.Ping / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: connlimit.MinPing, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			return wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", why())
		}),
	)
}

// standbySite returns the HTTP server of health and metrics. It requires the same permissions as a tracker's.
func (s Security) standbySite(why func() error, log *slog.Logger, metrics prometheus.Gatherer) *http.Server {
	mux := http.NewServeMux()
	wire.HealthChecks{
		Live:  func() error { return nil },
		Ready: func(context.Context) error { return why() },
	}.Register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, why().Error(), http.StatusServiceUnavailable)
	})
	return s.site(s.newGate(authz.Config{Logger: log}).HTTP(mux, wire.LivePath, wire.ReadyPath), log)
}
