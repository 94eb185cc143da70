package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"github.com/tilth-dev/tilth/internal/access/authorisation"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	livez "github.com/tilth-dev/tilth/internal/health"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/internal/wire/bounds"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/services"
	"github.com/tilth-dev/tilth/tracker/telemetry"
	"github.com/tilth-dev/tilth/tracker/web"
)

// Host serves shards of a database at one pair of addresses: each has a tracker, which comes and goes with the shard.
// A call says by a header which shard it is for; what is about no job and no agent is answered by any. Its methods may
// be called from many goroutines.
type Host struct {
	cfg    HostConfig
	bounds *bounds.Checker
	gate   *authorisation.Gate
	guard  *connlimit.Guard
	health *health.Server
	why    waiting // what is told while it has no shard

	mu     sync.Mutex
	shards map[int]*hosted
}

// HostConfig is what a host needs.
type HostConfig struct {
	Security Security
	// Shards is how many the database has.
	Shards int
	Logger *slog.Logger
	// Metrics are those of the process; those of a shard come with its tracker.
	Metrics *prometheus.Registry
	// Elsewhere makes a call of a shard that another process has, with an authorization header unless that is empty;
	// nil = nobody else is known.
	Elsewhere func(ctx context.Context, shard int, authorization, method string, req, reply any) error
	// Spread makes a call of all shards out of calls of one shard each (-1 = of any); see agent.OverShards.
	Spread func(ctx context.Context, shards int, method string, req, reply any, invoke InvokeShard) error
}

// InvokeShard makes a call of one shard.
type InvokeShard = func(ctx context.Context, shard int, req, reply any) error

// hosted is a shard that the host has.
type hosted struct {
	*Tracker
	metrics prometheus.Gatherer
	conn    *inProcess // what implements its services
}

// NewHost makes a host that has no shard yet. Until it has one, the metrics of the process say that it stands by, and
// how many shards there are: or else nothing would tell of a farm of which no tracker has any.
func NewHost(cfg HostConfig) (*Host, error) {
	checker, err := bounds.New()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(telemetry.Active(cfg.Metrics, false), telemetry.Shards(cfg.Metrics, cfg.Shards)); err != nil {
		return nil, fmt.Errorf("register the metrics of a tracker of shards: %w", err)
	}
	h := &Host{cfg: cfg, bounds: checker, health: health.NewServer(), shards: map[int]*hosted{}}
	s := cfg.Security
	h.gate = authorisation.New(authorisation.Config{
		Tokens: s.Tokens, OIDC: s.OIDC, Certificates: s.Certificates, Audit: s.Audit, Holdings: hostHoldings{h}, Logger: cfg.Logger,
		PassesOn: cfg.Elsewhere != nil, CallsPerSecond: s.CallsPerSecond, Refused: func(c codes.Code) { h.count(func(m *telemetry.Metrics) { m.RefusedCaller(c) }) },
	})
	guard := connlimit.Config{
		Limits: s.limits(), Admit: h.admit, Check: h.bounds.Wire,
		NoRoom:  func(of connlimit.Room) { h.count(func(m *telemetry.Metrics) { m.NoRoom(string(of)) }) },
		Refused: func(method string, err error) { h.count(func(m *telemetry.Metrics) { m.RefusedCall(method, err) }) },
	}
	if s.TLS != nil {
		guard.TLS = s.TLS.Config("h2")
	}
	h.guard = connlimit.New(guard)
	return h, nil
}

// Add has a shard's tracker answer calls from here on. Its metrics are shown with the host's.
func (h *Host) Add(t *Tracker, metrics prometheus.Gatherer) {
	t.guard.Store(h.guard)
	one := &hosted{Tracker: t, metrics: metrics, conn: t.newInProcess(h.gate)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shards[t.cfg.Shard.Index] = one
}

// Remove has calls for a shard refused from here on.
func (h *Host) Remove(t *Tracker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.shards[t.cfg.Shard.Index]; one != nil && one.Tracker == t {
		delete(h.shards, t.cfg.Shard.Index)
	}
}

// Say says what is away that the host waits for while it has no shard; nil = others have them.
func (h *Host) Say(away error) { h.why.say(away) }

// Has says whether the host has a shard.
func (h *Host) Has(shard int) bool { return h.of(shard) != nil }

// Held is how many shards the host has.
func (h *Host) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.shards)
}

// all are the shards that the host has, in order.
func (h *Host) all() (all []*hosted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for shard := range h.cfg.Shards {
		if one := h.shards[shard]; one != nil {
			all = append(all, one)
		}
	}
	return all
}

// of is a shard; nil when the host does not have it.
func (h *Host) of(shard int) *hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shards[shard]
}

// count has something counted that is the process's, with the metrics of its first shard.
func (h *Host) count(f func(m *telemetry.Metrics)) {
	if all := h.all(); len(all) > 0 {
		f(all[0].Tracker.metrics)
	}
}

// errElsewhere is what is said of a shard that another tracker has.
func errElsewhere(shard int) error {
	return wire.Refuse(codes.Unavailable, wire.ReasonStandby, "this tracker does not have shard %d: another one does, or is about to", shard)
}

// called is the shard that a call is for; nil when it needs none, as those about health.
func (h *Host) called(method string, header metadata.MD) (*hosted, error) {
	named := header.Get(wire.ShardHeader)
	if len(named) == 1 {
		shard, err := strconv.Atoi(named[0])
		if err != nil || shard < 0 || shard >= h.cfg.Shards {
			return nil, wire.RefuseShard(wire.ReasonShards, h.cfg.Shards, "there is no shard %q: this farm has %d", named[0], h.cfg.Shards)
		}
		if one := h.of(shard); one != nil {
			return one, nil
		}
		return nil, errElsewhere(shard)
	}
	if !wire.AnyShard(method) {
		return nil, wire.RefuseShard(wire.ReasonShards, h.cfg.Shards,
			"this farm has %d shards, and the call names none: run the tracker's version of tilth on both sides", h.cfg.Shards)
	}
	if all := h.all(); len(all) > 0 {
		return all[0], nil
	}
	if tilthMethod(method) {
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", h.why.why())
	}
	return nil, nil
}

type hostedKey struct{}

// admit finds the shard that a call is for, and has the gate decide about it.
func (h *Host) admit(ctx context.Context, method string, header metadata.MD) (context.Context, connlimit.Admission, error) {
	one, err := h.called(method, header)
	if err != nil {
		return nil, connlimit.Admission{}, err
	}
	ctx, a, err := admitBy(h.gate)(ctx, method, header)
	if err != nil {
		return nil, connlimit.Admission{}, err
	}
	return context.WithValue(ctx, hostedKey{}, one), a, nil
}

// hostedOf is the shard that a call was admitted for; nil = none is needed.
func hostedOf(ctx context.Context) *hosted {
	one, _ := ctx.Value(hostedKey{}).(*hosted)
	return one
}

// counted is the outermost interceptor of calls, so that refused ones count, too.
func counted(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if one := hostedOf(ctx); one != nil {
		return one.Tracker.metrics.Count(ctx, req, info, handle)
	}
	return handle(ctx, req)
}

// newServer returns the server, which passes calls on to the trackers.
func (h *Host) newServer() *grpc.Server {
	own := slices.Concat([]grpc.ServerOption{grpc.ChainUnaryInterceptor(counted)}, h.guard.ServerOptions(), h.gate.ServerOptions(), []grpc.ServerOption{
		grpc.ReadBufferSize(readBufferBytes), grpc.WriteBufferSize(writeBufferBytes), grpc.HeaderTableSize(headerTableBytes),
	})
	s := grpc.NewServer(own...)
	guarded := guarded{connlimit.Registrar(s), s}
	for _, desc := range []*grpc.ServiceDesc{
		&tilthv1.JobService_ServiceDesc, &tilthv1.AgentService_ServiceDesc, &tilthv1.SearchService_ServiceDesc,
		&tilthv1.BuildService_ServiceDesc, &tilthv1.MeasureService_ServiceDesc, &tilthv1.RecordService_ServiceDesc,
		&tilthv1.DeviceService_ServiceDesc, &tilthv1.RunService_ServiceDesc, &tilthv1.AdminService_ServiceDesc,
		&tilthv1.ArtifactService_ServiceDesc, &tilthv1.ReleaseService_ServiceDesc,
	} {
		guarded.RegisterService(dispatching(desc), nil)
	}
	healthv1.RegisterHealthServer(guarded, h.health)
	reflection.Register(guarded)
	return s
}

// dispatching is a service each of whose calls is answered by the tracker of its shard.
func dispatching(of *grpc.ServiceDesc) *grpc.ServiceDesc {
	desc := *of
	desc.Methods = slices.Clone(of.Methods)
	for i, m := range of.Methods {
		name := "/" + of.ServiceName + "/" + m.MethodName
		desc.Methods[i].Handler = func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(hostedOf(ctx).conn.methods[name].server, ctx, decode, intercept)
		}
	}
	desc.Streams = slices.Clone(of.Streams)
	for i, m := range of.Streams {
		name := "/" + of.ServiceName + "/" + m.StreamName
		desc.Streams[i].Handler = func(_ any, stream grpc.ServerStream) error {
			return m.Handler(hostedOf(stream.Context()).conn.methods[name].server, stream)
		}
	}
	return &desc
}

// newSite returns the server of the pages. Each shows the jobs of all shards; what is done to a job is done where its
// shard is.
func (h *Host) newSite(pages http.Handler) *http.Server {
	return h.cfg.Security.site(h.gate.HTTP(boundPages(pages, h.guard), web.Public()...), h.cfg.Logger)
}

func (h *Host) pages() *web.Site {
	return web.New(web.Config{
		Conn: hostConn{h}, Door: h.gate, Checks: livez.Checks{Live: h.alive, Ready: h.ready}, Metrics: hostMetrics{h}, Logger: h.cfg.Logger, Now: time.Now,
	})
}

// alive fails when a shard's store does: its tracker ends.
func (h *Host) alive() error {
	for _, one := range h.all() {
		if err := one.engine.Alive(); err != nil {
			return err
		}
	}
	return nil
}

// ready fails unless there is a shard, and all that there are can be written.
func (h *Host) ready(ctx context.Context) error {
	all := h.all()
	if len(all) == 0 {
		return h.why.why()
	}
	for _, one := range all {
		if err := one.engine.Ready(ctx); err != nil {
			return fmt.Errorf("shard %d: %w", one.cfg.Shard.Index, err)
		}
	}
	return nil
}

// Serve serves until ctx ends (nil), or a listener fails.
func (h *Host) Serve(ctx context.Context, rpc, pages net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	refused := func(addr net.Addr) {
		h.count((*telemetry.Metrics).RefusedPeer)
		h.cfg.Logger.Debug("connection refused: there are too many", "from", addr)
	}
	pageSite := h.pages()
	server, site := h.newServer(), h.newSite(pageSite)
	rpc, pages = h.cfg.Security.guard(rpc, refused), h.cfg.Security.guardWeb(pages, refused)
	var parts sync.WaitGroup
	var mu sync.Mutex
	var all error
	run := func(what string, f func() error) {
		parts.Go(func() {
			err := f()
			if err != nil {
				err = fmt.Errorf("%s: %w", what, err)
			}
			cancel(err)
			mu.Lock()
			defer mu.Unlock()
			all = errors.Join(all, err)
		})
	}
	run("tell health", func() error { return h.tellHealth(ctx) })
	run("serve gRPC", func() error {
		if err := server.Serve(rpc); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	})
	if pages != nil {
		run("note metrics", func() error {
			pageSite.Run(ctx)
			return nil
		})
		run("serve HTTP", func() error {
			if err := site.Serve(pages); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	<-ctx.Done()
	h.health.Shutdown()
	for _, one := range h.all() {
		one.engine.Close() // long polls and streams end
	}
	stopServer(server)
	site.Close()
	parts.Wait()
	return all
}

// healthEvery is how often what gRPC's health service says is brought up to date.
const healthEvery = time.Second

// tellHealth does so until ctx ends.
func (h *Host) tellHealth(ctx context.Context) error {
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	for {
		status := healthv1.HealthCheckResponse_NOT_SERVING
		within, cancel := context.WithTimeout(ctx, 2*healthEvery)
		if h.ready(within) == nil {
			status = healthv1.HealthCheckResponse_SERVING
		}
		cancel()
		h.health.SetServingStatus("", status)
		if all := h.all(); len(all) > 0 { // agents are those of every shard
			services.TellKinds(all[0].engine, h.health)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// tilthMethod says whether a method is of the tracker's own services.
func tilthMethod(method string) bool {
	return len(method) > len(tilthPrefix) && method[:len(tilthPrefix)] == tilthPrefix
}

const tilthPrefix = "/tilth.v1."
