package farm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// shardsServed serves shards of a database. One goroutine per shard waits until no other process serves it,
// and then runs its tracker.
type shardsServed struct {
	cfg      TrackerConfig
	kind     StoreKind
	security tracker.Security
	host     *tracker.Host
	members  atomic.Int64 // number of processes that serve shards, including this one
	others   *peerTrackers
	giveUp   []chan struct{}
	// began is set once a shard was opened or stood by for. Errors of an unreachable database are then
	// transient. Before that, its address may be wrong.
	began    atomic.Bool
	versions versions
}

const (
	// countEvery is the interval at which the trackers of a database are counted.
	countEvery = time.Second
	// giveUpAfter is the number of consecutive counts with more shards than the process's share before it
	// releases one, so that short restarts move nothing.
	giveUpAfter = 5
	// reopenAfter is the pause before a shard is opened again after a database error.
	reopenAfter = time.Second
	// longestReopen is the longest pause before reopening a shard that needs a repair, such as a damaged one.
	longestReopen = time.Minute
)

// serveShards serves shards until ctx ends or one fails permanently.
func serveShards(ctx context.Context, cfg TrackerConfig, kind StoreKind) (err error) {
	if kind.Shard == nil {
		return errors.New("tracker: only a store in a database has shards: leave --shards out")
	}
	members, err := kind.Members(cfg.Store, rand.Text())
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	defer members.Leave()
	security, closer, err := cfg.Security.open(cfg.Tracker.Logger)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	s := &shardsServed{cfg: cfg, kind: kind, security: security}
	s.members.Store(1)
	if s.others, err = newOthers(security); err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	defer s.others.Close()
	s.host = tracker.NewHost(tracker.HostConfig{
		Security: security, Shards: cfg.Shards, Logger: cfg.Tracker.Logger, Metrics: newRegistry(cfg.Build), Elsewhere: s.others.call, Spread: agent.CallShards,
	})
	rpc, web, err := listen(cfg)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(rpc.Addr(), addrOf(web))
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	var parts sync.WaitGroup
	for shard := range cfg.Shards {
		s.giveUp = append(s.giveUp, make(chan struct{}, 1))
		parts.Go(func() {
			if err := s.serve(life, shard); err != nil {
				end(err)
			}
		})
	}
	parts.Go(func() { s.balance(life, members, cmp.Or(cfg.Advertise, addressOf(rpc.Addr()))) })
	served := s.host.Serve(life, rpc, web)
	end(served)
	parts.Wait()
	if cause := context.Cause(life); ctx.Err() == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return served
}

// share returns the maximum number of shards of this process while others are available.
func (s *shardsServed) share() int {
	members := max(1, int(s.members.Load()))
	return (s.cfg.Shards + members - 1) / members
}

// balance counts the processes and releases shards that others should serve. address is where others reach
// this process.
func (s *shardsServed) balance(ctx context.Context, members StoreMembers, address string) {
	tooMany := 0
	for ctx.Err() == nil {
		if !s.began.Load() { // it cannot take a shard yet, so others keep theirs
			_ = retry.Sleep(ctx, countEvery)
			continue
		}
		others, err := members.Heartbeat(ctx, records.Member{Address: address, Certificate: s.others.shown(), Host: s.others.host})
		if err == nil {
			s.members.Store(int64(len(others)) + 1)
			s.others.update(others)
		}
		if err != nil || s.host.Held() <= s.share() { // earlier members may be gone, so a released shard would have no tracker
			tooMany = 0
		} else if tooMany++; tooMany >= giveUpAfter {
			tooMany = 0
			s.releaseOne()
		}
		_ = retry.Sleep(ctx, countEvery)
	}
}

// releaseOne releases the last shard of the process.
func (s *shardsServed) releaseOne() {
	for shard := s.cfg.Shards - 1; shard >= 0; shard-- {
		if s.host.Has(shard) {
			s.cfg.Tracker.Logger.Info("rebalancing: releasing a shard", "shard", shard)
			select {
			case s.giveUp[shard] <- struct{}{}:
			default:
			}
			return
		}
	}
}

// serve serves a shard whenever this process holds it. It returns nil when ctx ends, or a permanent error.
func (s *shardsServed) serve(ctx context.Context, shard int) error {
	log := s.cfg.Tracker.Logger.With("shard", shard)
	pause := reopenAfter // before the next attempt
	var away retry.RepeatedErrors
	for ctx.Err() == nil {
		store, err := s.kind.Shard(ctx, s.cfg.Store, StoreShard{
			Index: shard, Count: s.cfg.Shards, Reluctant: func(context.Context) bool { return s.host.Held() >= s.share() },
			StandsBy: func() {
				s.began.Store(true)
				s.host.SetWaiting(nil)
			},
		})
		if err == nil {
			s.began.Store(true)
			s.host.SetWaiting(nil)
			log.Info("shard acquired")
			s.versions.tell(s.cfg.Tracker.Logger, store)
			var served bool
			served, err = s.serveOnce(ctx, shard, store)
			err = errors.Join(err, store.Close())
			log.Info("shard released")
			if served {
				pause, away = reopenAfter, 0
			}
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, records.ErrTakenOver):
			log.Warn("shard lost to another tracker", "error", err)
		case errors.Is(err, records.ErrVersion) && s.host.Held() > 0:
			log.Error("unsupported shard schema version; shard not served", "error", err, "in", pause)
			_ = retry.Sleep(ctx, pause)
			pause = min(2*pause, longestReopen)
		case !isTransient(err, s.began.Load(), true):
			return err
		case store != nil && !isUnreachable(err) || errors.Is(err, records.ErrDamaged):
			log.Error("the shard cannot be served, trying again", "error", err, "in", pause)
			_ = retry.Sleep(ctx, pause)
			pause = min(2*pause, longestReopen)
		default:
			s.host.SetWaiting(unreachableService(err))
			if away.Due() {
				log.Warn("the shard cannot be opened, trying again", "error", err)
			}
			_ = retry.Sleep(ctx, reopenAfter)
		}
	}
	return nil
}

// serveOnce runs the tracker of a shard until ctx ends or the shard is released (nil), or it fails. served
// reports whether it accepted calls.
func (s *shardsServed) serveOnce(ctx context.Context, shard int, store records.Store) (served bool, err error) {
	metrics := prometheus.NewRegistry()
	c := s.cfg.Tracker
	c.Store, c.Security, c.Shard = store, s.security, tracker.Shard{Index: shard, Count: s.cfg.Shards}
	c.Logger = c.Logger.With("shard", shard)
	c.Registerer = prometheus.WrapRegistererWith(prometheus.Labels{"shard": strconv.Itoa(shard)}, metrics)
	c.Artifacts = c.Artifacts.Share(shard, s.cfg.Shards)
	c.Artifacts.Opening = ctx
	if shard > 0 {
		c.ArtifactsDir += "-" + strconv.Itoa(shard)
	}
	t, err := tracker.New(c)
	if err != nil {
		return false, fmt.Errorf("tracker of shard %d: %w", shard, err)
	}
	select { // drop requests from before it held the shard
	case <-s.giveUp[shard]:
	default:
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.giveUp[shard]:
			s.host.Remove(t) // removed first, so that callers turn to other trackers
			stop()
		case <-ctx.Done():
		}
	}()
	s.host.Add(t, metrics)
	s.host.SetWaiting(nil)
	defer s.host.Remove(t)
	return true, t.Run(ctx)
}

// peerTrackers connects to the trackers of other shards of a database, to forward calls of web pages. Their
// addresses and certificates come from the database.
type peerTrackers struct {
	*agent.Trackers
	host    []byte        // identifies this tracker's host
	tls     *certs.Server // TLS of this tracker; nil means that no tracker uses TLS
	members atomic.Pointer[[]records.Member]
}

func newOthers(security tracker.Security) (o *peerTrackers, err error) {
	o = &peerTrackers{host: thisHost(), tls: security.TLS}
	o.members.Store(&[]records.Member{})
	side := insecure.NewCredentials()
	if o.tls != nil {
		side = certs.NewPinned(o.pins)
	}
	o.Trackers, err = agent.DialTrackers(side)
	return o, err
}

// addressOf returns the address of a listener as callers use it.
func addressOf(listener net.Addr) string {
	if listener.Network() == "unix" {
		return "unix:" + listener.String()
	}
	return listener.String()
}

// thisHost returns a digest of the system's boot id and the process's network namespace. It is equal for
// exactly those processes that share the loopback interface. It is empty if the system does not provide them.
func thisHost() []byte {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(string(boot) + network))
	return sum[:]
}

// here reports whether traffic to a tracker stays on this host.
func (o *peerTrackers) here(m records.Member) bool {
	return certs.IsLocal(m.Address) && len(o.host) > 0 && bytes.Equal(m.Host, o.host)
}

// update replaces the list of peer trackers. Without certificates, loopback addresses of other hosts must be
// dropped, because they would lead to another listener on this host.
func (o *peerTrackers) update(members []records.Member) {
	o.members.Store(&members)
	var addresses []string
	for _, m := range members {
		if m.Address != "" && (o.tls != nil || o.here(m) || !certs.IsLocal(m.Address)) {
			addresses = append(addresses, m.Address)
		}
	}
	o.SetAddresses(addresses)
}

// pins returns the digests of the peers' certificates.
func (o *peerTrackers) pins() (pins [][]byte) {
	for _, m := range *o.members.Load() {
		if len(m.Certificate) > 0 {
			pins = append(pins, m.Certificate)
		}
	}
	return pins
}

// shown returns the digest of this tracker's certificate, or "".
func (o *peerTrackers) shown() []byte {
	if o.tls == nil {
		return nil
	}
	return o.tls.Digest()
}

// call calls a shard that another tracker serves. It sends a token without TLS only within this host.
func (o *peerTrackers) call(ctx context.Context, shard int, authorization, method string, req, reply any) error {
	if authorization != "" {
		for _, m := range *o.members.Load() {
			if o.tls == nil && m.Address != "" && !o.here(m) {
				return status.Errorf(codes.FailedPrecondition,
					"another tracker has shard %d, and a token would be sent to %s of another host in the clear: give the trackers certificates, or use the command line", shard, m.Address)
			}
		}
	}
	return o.Invoke(ctx, shard, authorization, method, req, reply)
}
