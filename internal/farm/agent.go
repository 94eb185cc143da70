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

	"github.com/tilth-dev/tilth/internal/access/caller"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/agent/telemetry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// AgentConfig is what every agent needs. Tracker and CacheDir are required.
type AgentConfig struct {
	// Tracker is the address of the tracker: host:port or unix:PATH, or of several, with commas between.
	Tracker string
	// Proof is how the agent proves who it is.
	Proof caller.Proof
	// Name is unique in the farm and stable over restarts; empty = the host's name and the agent's kind.
	Name string
	// Slots is how many leases the agent holds at a time; 0 = the kind's own default.
	Slots int
	// CacheDir keeps what may be used again, and scratch files. Agents of different names may share it.
	CacheDir string
	// ScratchDir is for files that go with the agent; empty = a folder of the name's own in CacheDir.
	ScratchDir string
	// Lock is this host's; nil = the one in hostlock.DefaultDir(), which tells Logger of long waits.
	Lock *hostlock.Lock
	// DrainGrace is how long held work may take to end when the agent stops; 0 = agent.Config's default.
	DrainGrace time.Duration
	// HTTP is where metrics and health are served; empty = nowhere.
	HTTP string
	// Joined, when set, is called whenever the agent has joined the farm.
	Joined func()
	// Meanwhile, when set, runs beside the agent, over its connection to the tracker, until ctx ends.
	Meanwhile func(ctx context.Context, conn grpc.ClientConnInterface)
	// Version is this program's.
	Version string
	Logger  *slog.Logger
}

// base is an agent before it has a kind.
type base struct {
	cfg     AgentConfig
	spec    *tilthv1.AgentSpec
	conn    *grpc.ClientConn
	scratch string
	claim   *os.File // keeps the scratch folder from others while it is open
	// calibrate is agent.Config's; nil where there is no device.
	calibrate func(session string)
	meter     *telemetry.Agent
	// registry has the metrics, and site serves them; nil = nobody does.
	registry *prometheus.Registry
	site     *site
}

// begin makes what all agents have. The scratch folder belongs to the agent's name alone, so what an earlier life left
// there is removed.
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
	registry := newRegistry()
	metrics, err := telemetry.NewAgent(spec, registry)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", word, err)
	}
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
	b := &base{cfg: cfg, spec: spec, conn: conn, scratch: scratch, claim: claim, meter: metrics, registry: registry}
	if b.site, err = b.openSite(); err != nil {
		return nil, b.end(fmt.Errorf("%s: %w", word, err))
	}
	return b, nil
}

// scratchDir is a folder of the name's own, whatever the name: a/b and a_b are two, and none leads out of the cache.
func scratchDir(cache, name string) string {
	return filepath.Join(cache, "scratch", "agent-"+url.PathEscape(name))
}

// claimScratch makes the folder, locks it and empties it of what an earlier life left. EWOULDBLOCK when another
// process has it: that agent lives.
func claimScratch(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
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

// run is the agent's life; it ends what begin made.
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
	}))
}

// end gives up what begin made, and returns why.
func (b *base) end(why error) error {
	return errors.Join(why, b.site.close(), b.conn.Close(), os.RemoveAll(b.scratch), b.claim.Close())
}
