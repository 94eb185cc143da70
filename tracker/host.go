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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/rpc"
	"github.com/tilth-dev/tilth/tracker/telemetry"
	"github.com/tilth-dev/tilth/tracker/web"
)

// Host serves shards of one database on one pair of addresses. Each shard has a Tracker, which comes and goes with it.
// A header names the shard of a call; calls that concern no job and no agent may go to any shard. Without shards it
// stands by: it refuses calls with UNAVAILABLE, so that callers try their next address; over HTTP it is alive but not
// ready. Its methods are safe for concurrent use.
type Host struct {
	cfg    HostConfig
	gate   *authz.Gate
	guard  *connlimit.Guard
	health *health.Server
	away   atomic.Pointer[error] // the dependency that it waits for while it has no shard; nil means that others serve
	served atomic.Bool           // whether it has ever had a shard

	mu     sync.Mutex
	shards map[int]*hosted
}

// HostConfig configures a Host.
type HostConfig struct {
	Security Security
	// Shards is the number of shards of the database.
	Shards int
	Logger *slog.Logger
	// Metrics is the registry of the process. Each shard's metrics come with its tracker.
	Metrics *prometheus.Registry
	// Elsewhere calls a shard that another process serves. It sends an authorization header unless that is empty. nil
	// means no other process is known.
	Elsewhere func(ctx context.Context, shard int, authorization, method string, req, reply any) error
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Spread splits a call over all shards into calls of one shard each (-1 means any shard); see agent.CallShards.
	Spread func(ctx context.Context, shards int, method string, req, reply any, invoke InvokeShard) error
}

// InvokeShard calls one shard.
type InvokeShard = func(ctx context.Context, shard int, req, reply any) error

// hosted is a shard that the host serves.
type hosted struct {
	*Tracker
	metrics prometheus.Gatherer
	conn    *inProcess // calls its services
}

// NewHost returns a host without shards. Until it has one, its metrics report that it is on standby and how many
// shards exist, so that a farm without any active tracker is visible.
func NewHost(cfg HostConfig) *Host {
	telemetry.Active(cfg.Metrics, false)
	telemetry.Shards(cfg.Metrics, cfg.Shards)
	return newHost(cfg)
}

func newHost(cfg HostConfig) *Host {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	h := &Host{cfg: cfg, health: health.NewServer(), shards: map[int]*hosted{}}
	h.gate = authz.New(authz.Config{
		Tokens: cfg.Security.Tokens, OIDC: cfg.Security.OIDC, Certificates: cfg.Security.Certificates, Audit: cfg.Security.Audit,
		CallsPerSecond: cfg.Security.CallsPerSecond, Holdings: hostHoldings{h}, Logger: cfg.Logger, Now: cfg.Now, PassesOn: cfg.Elsewhere != nil,
		Refused: func(c codes.Code) { h.count(func(m *telemetry.Metrics) { m.RefusedCaller(c) }) },
	})
	h.guard = cfg.Security.newGuard(connlimit.Config{
		Admit: h.admit, Check: wire.CheckEncoded,
		OverBudget: func(of connlimit.Memory) { h.count(func(m *telemetry.Metrics) { m.OverBudget(string(of)) }) },
		Refused:    func(method string, err error) { h.count(func(m *telemetry.Metrics) { m.RefusedCall(method, err) }) },
	})
	return h
}

// Add starts routing calls to a shard's tracker and exports its metrics.
func (h *Host) Add(t *Tracker, metrics prometheus.Gatherer) {
	t.guard.Store(h.guard)
	one := &hosted{Tracker: t, metrics: metrics, conn: t.newInProcess(h.gate)}
	h.served.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shards[t.cfg.Shard.Index] = one
}

// Remove stops routing calls to a shard.
func (h *Host) Remove(t *Tracker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.shards[t.cfg.Shard.Index]; one != nil && one.Tracker == t {
		delete(h.shards, t.cfg.Shard.Index)
	}
}

// SetWaiting sets the dependency that the host waits for while it has no shard; nil means that others serve the
// shards.
func (h *Host) SetWaiting(away error) { h.away.Store(&away) }

// why returns the error for callers while the host has no shard.
func (h *Host) why() error {
	if away := h.away.Load(); away != nil && *away != nil {
		return fmt.Errorf("standby: %w", *away)
	}
	return errors.New("this tracker is on standby: another one has the database")
}

// Has reports whether the host serves a shard.
func (h *Host) Has(shard int) bool { return h.shard(shard) != nil }

// Held returns the number of shards that the host serves.
func (h *Host) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.shards)
}

// all returns the hosted shards in order.
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

// shard returns a hosted shard, or nil.
func (h *Host) shard(shard int) *hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shards[shard]
}

// count records a metric of the process with the first shard's metrics.
func (h *Host) count(f func(m *telemetry.Metrics)) {
	if all := h.all(); len(all) > 0 {
		f(all[0].Tracker.metrics)
	}
}

// called returns the shard that a call is for, or nil if it needs none, such as a health check. Where there is only
// one, it has all jobs, also those that a conversion took from other shards.
func (h *Host) called(method string, header metadata.MD) (*hosted, error) {
	named := header.Get(wire.ShardHeader)
	if len(named) == 1 && h.cfg.Shards > 1 {
		shard, err := strconv.Atoi(named[0])
		if err != nil || shard < 0 || shard >= h.cfg.Shards {
			return nil, wire.RefuseShard(wire.ReasonShards, h.cfg.Shards, "there is no shard %q: this farm has %d", named[0], h.cfg.Shards)
		}
		if one := h.shard(shard); one != nil {
			return one, nil
		}
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonStandby, "this tracker does not have shard %d: another one does, or is about to", shard)
	}
	if h.cfg.Shards > 1 && !wire.AnyShard(method) {
		return nil, wire.RefuseShard(wire.ReasonShards, h.cfg.Shards,
			"this farm has %d shards, and the call names none: run the tracker's version of tilth on both sides", h.cfg.Shards)
	}
	if all := h.all(); len(all) > 0 {
		return all[0], nil
	}
	if strings.HasPrefix(method, tilthPrefix) {
		return nil, wire.Refuse(codes.Unavailable, wire.ReasonStandby, "%v", h.why())
	}
	return nil, nil
}

type hostedKey struct{}

// admit finds the shard of a call and lets the gate decide about it.
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

// hostedOf returns the shard that a call was admitted for, or nil if it needs none.
func hostedOf(ctx context.Context) *hosted {
	one, _ := ctx.Value(hostedKey{}).(*hosted)
	return one
}

// counted counts calls.
func counted(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if one := hostedOf(ctx); one != nil {
		return one.Tracker.metrics.Count(ctx, req, info, handle)
	}
	return handle(ctx, req)
}

// registerDispatching registers the services that pass each call to the tracker of its shard.
func registerDispatching(services grpc.ServiceRegistrar) {
	for _, desc := range []*grpc.ServiceDesc{
		&tilthv1.JobService_ServiceDesc, &tilthv1.AgentService_ServiceDesc, &tilthv1.SearchService_ServiceDesc,
		&tilthv1.BuildService_ServiceDesc, &tilthv1.MeasureService_ServiceDesc, &tilthv1.RecordService_ServiceDesc,
		&tilthv1.DeviceService_ServiceDesc, &tilthv1.RunService_ServiceDesc, &tilthv1.AdminService_ServiceDesc,
		&tilthv1.ArtifactService_ServiceDesc, &tilthv1.ReleaseService_ServiceDesc,
	} {
		services.RegisterService(dispatching(desc), nil)
	}
}

// dispatching returns a copy of a service that passes each call to the tracker of its shard.
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

// pages returns the pages. They show the jobs of all shards; actions go to the job's shard.
func (h *Host) pages() *web.Site {
	return web.New(web.Config{
		Conn: hostConn{h}, Upload: artifact.NewClient(hostConn{h}, nil, h.cfg.Logger).Upload, Auth: h.gate, Checks: wire.HealthChecks{Live: h.alive, Ready: h.ready}, Metrics: hostMetrics{h}, Logger: h.cfg.Logger, Now: h.cfg.Now,
		UploadDir: func() string {
			for _, one := range h.all() {
				return one.coordinator.Artifacts().Dir
			}
			return "" // calls are refused
		},
	})
}

// alive returns an error if the store of any hosted shard has failed, since its tracker is stopping.
func (h *Host) alive() error {
	for _, one := range h.all() {
		if err := one.coordinator.Alive(); err != nil {
			return err
		}
	}
	return nil
}

// ready returns an error unless the host has a shard and all its shards are writable.
func (h *Host) ready(ctx context.Context) error {
	all := h.all()
	if len(all) == 0 {
		return h.why()
	}
	for _, one := range all {
		err := one.coordinator.Ready(ctx)
		if err != nil && h.cfg.Shards > 1 {
			err = fmt.Errorf("shard %d: %w", one.cfg.Shard.Index, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Serve serves until ctx ends, returning nil, or until a listener fails.
func (h *Host) Serve(ctx context.Context, rpcListener, webListener net.Listener) error {
	return h.serve(ctx, rpcListener, webListener, map[string]func(context.Context) error{})
}

// serve is Serve with other parts that run beside the servers.
func (h *Host) serve(ctx context.Context, rpcListener, webListener net.Listener, parts map[string]func(context.Context) error) error {
	refused := refusals(h.cfg.Logger, func() { h.count((*telemetry.Metrics).RefusedPeer) })
	rpcListener, webListener = h.cfg.Security.guard(rpcListener, refused), h.cfg.Security.guardWeb(webListener, refused)
	calls, pages := h.newServer(), h.pages()
	site := h.cfg.Security.site(h.gate.HTTP(boundPages(pages, h.guard), web.Public()...), h.cfg.Logger)
	parts["serve gRPC"] = func(context.Context) error {
		// A server stopped before it began to serve returns here.
		if err := calls.Serve(rpcListener); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	}
	parts["serve health"] = func(ctx context.Context) error {
		rpc.ServeHealth(ctx, h.health, h.ready, func() *coordinator.Coordinator {
			if all := h.all(); len(all) > 0 { // agents have a session with every shard
				return all[0].coordinator
			}
			return nil
		}, h.cfg.Logger)
		return nil
	}
	if webListener != nil {
		parts["note metrics"] = func(ctx context.Context) error {
			pages.Run(ctx)
			return nil
		}
		parts["serve HTTP"] = func(context.Context) error {
			if err := site.Serve(webListener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}
	}
	return runParts(ctx, parts, func() {
		h.health.Shutdown()
		for _, one := range h.all() {
			one.Close()
		}
		if !h.served.Load() {
			calls.Stop() // no call takes long
		}
		timer := time.AfterFunc(stopGrace, calls.Stop)
		defer timer.Stop()
		calls.GracefulStop()
		site.Close()
	})
}

// tilthPrefix begins the methods of the tracker's own services.
const tilthPrefix = "/tilth.v1."
