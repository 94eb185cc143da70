package farm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// AgentConfig configures an agent of any kind. Tracker and CacheDir are required.
type AgentConfig struct {
	// Tracker is the address of the tracker, host:port or unix:PATH, or a comma-separated list.
	Tracker string
	// Proof authenticates the agent.
	Proof certs.Proof
	// Name is unique in the farm and stable across restarts; empty means the host name and the kind of the agent.
	Name string
	// Slots is the number of leases held at a time; 0 means the default of the kind.
	Slots int
	// CacheDir holds caches and scratch files. Agents with different names may share it.
	CacheDir string
	// ScratchDir is removed with the agent; empty means a folder in CacheDir derived from the name.
	ScratchDir string
	// Lock is the host's lock; nil means the one in hostlock.DefaultDir(), which reports long waits to Logger.
	Lock *hostlock.Lock
	// DrainGrace is the time that held work may take when the agent stops; 0 means the default of agent.Config.
	DrainGrace time.Duration
	// HTTP is the address that serves metrics and health; empty means none.
	HTTP string
	// Joined, if set, is called whenever the agent has joined the farm.
	Joined func()
	// Meanwhile, if set, runs beside the agent, over its connection to the tracker, until ctx ends.
	Meanwhile func(ctx context.Context, conn grpc.ClientConnInterface)
	// Version and Commit are those of this program.
	Version, Commit string
	Logger          *slog.Logger
}

// base is the part of an agent that all kinds share.
type base struct {
	cfg     AgentConfig
	spec    *tilthv1.AgentSpec
	conn    *grpc.ClientConn
	scratch string
	claim   *os.File // locks the scratch folder while it is open
	// leave ends the membership in the farm for the host's lock.
	leave func()
	// calibrate is agent.Config.Calibrate; nil without a device.
	calibrate func(session string)
	meter     *AgentMetrics
	// registry holds the metrics, and site serves them; nil if HTTP is empty.
	registry *prometheus.Registry
	site     *site
}

// begin sets up the shared part of an agent. It empties the scratch folder, which belongs to the agent's name alone.
func begin(cfg AgentConfig, kind tilthv1.AgentKind, word string) (*base, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	cfg.Name = cmp.Or(cfg.Name, host+"/"+word)
	if cfg.Lock == nil {
		if cfg.Lock, err = hostlock.Announced(cfg.Logger); err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	options, err := cfg.Proof.DialOptions(cfg.Tracker, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	spec := &tilthv1.AgentSpec{Name: cfg.Name, Kind: kind, Host: host, Version: cfg.Version}
	registry := newRegistry(Build{cfg.Version, cfg.Commit})
	metrics := NewAgentMetrics(spec, registry)
	conn, err := agent.Dial(cfg.Tracker, append(options, metrics.DialOption())...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
	scratch := cmp.Or(cfg.ScratchDir, scratchDir(cfg.CacheDir, cfg.Name))
	claim, err := claimScratch(scratch)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: an agent named %s runs on this host already: stop it, or choose another --name", word, cfg.Name), conn.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: scratch folder: %w", word, err), conn.Close())
	}
	leave, err := cfg.Lock.JoinFarm(cfg.Tracker)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", word, err), claim.Close(), conn.Close())
	}
	b := &base{cfg: cfg, spec: spec, conn: conn, scratch: scratch, claim: claim, leave: leave, meter: metrics, registry: registry}
	if b.site, err = b.openSite(); err != nil {
		return nil, b.end(fmt.Errorf("%s: %w", word, err))
	}
	return b, nil
}

// scratchDir returns the scratch folder of a name. Different names, such as a/b and a_b, get different
// folders, and none is outside the cache.
func scratchDir(cache, name string) string {
	return filepath.Join(cache, "scratch", "agent-"+url.PathEscape(name))
}

// claimScratch creates the folder, locks it and empties it. It returns EWOULDBLOCK if a live agent holds it.
func claimScratch(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reporter returns a function that reports on leases by a method of the tracker, and tries again until it answers.
func reporter[Q, R any](
	log *slog.Logger, what string, method func(context.Context, Q, ...grpc.CallOption) (R, error),
) func(context.Context, Q) error {
	return func(ctx context.Context, report Q) error {
		return agent.Report(ctx, log, what, func(ctx context.Context) error {
			_, err := method(ctx, report)
			return err
		})
	}
}

// run runs the agent and then releases the resources of begin.
func (b *base) run(ctx context.Context, handler agent.Handler, slots int) error {
	beside, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	if b.cfg.Meanwhile != nil {
		others.Go(func() { b.cfg.Meanwhile(beside, b.conn) })
	}
	return b.end(agent.Run(ctx, agent.Config{
		Conn: b.conn, Spec: b.spec, Handler: b.meter.Handler(handler), Slots: cmp.Or(b.cfg.Slots, slots), Logger: b.cfg.Logger,
		DrainGrace: b.cfg.DrainGrace, Calibrate: b.calibrate, Joined: b.cfg.Joined,
		MachineHeldBy: func() string { return hostlock.Join(b.cfg.Lock.Blocked()) },
	}))
}

// end releases the resources of begin and returns why.
func (b *base) end(why error) error {
	b.leave()
	return errors.Join(why, b.site.close(), b.conn.Close(), os.RemoveAll(b.scratch), b.claim.Close())
}
