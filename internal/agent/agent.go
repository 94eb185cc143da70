package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Causes with which a handler's context ends; see context.Cause.
var (
	// ErrDropped says that the tracker took the lease back: it was cancelled, or lost.
	ErrDropped = errors.New("lease dropped by the tracker")
	// ErrVoidSession says that the tracker forgot this agent, and with it all its leases.
	ErrVoidSession = errors.New("session void")
	// ErrDraining says that the agent stops, and the grace to finish what it held is over.
	ErrDraining = errors.New("agent is stopping")
)

// Handler does leased work.
type Handler interface {
	// Handle does one lease's work and reports it (see Report). It returns nil once the report was accepted. Another
	// error makes the agent report the attempt as failed, through the fault of its side. ctx ends when the lease is
	// dropped or the agent stops; Handle then returns soon, with any error.
	Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error
}

// HandlerFunc is a Handler made of a function.
type HandlerFunc func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	return f(ctx, work)
}

// Config is what an agent needs. Conn, Spec and Handler are required; every other field has a default.
type Config struct {
	// Conn leads to the tracker; see Dial.
	Conn grpc.ClientConnInterface
	Spec *tilthv1.AgentSpec
	// Handler is called for several leases at a time if Slots allows.
	Handler Handler
	// Calibrate, when set, is called when the tracker asks for a calibration of the device in a session, maybe again
	// before one is reported. It must not block.
	Calibrate func(session string)
	// Joined, when set, is called whenever the agent has joined.
	Joined func()
	// Slots is how many leases to hold at a time; 0 = 1.
	Slots int
	// Logger hears of what happens; nil = nobody.
	Logger *slog.Logger
	// LeaseWait is how long one request for work waits; 0 = 1 min.
	LeaseWait time.Duration
	// DrainGrace is how long held work may take to end when the agent stops; 0 = 10 s.
	DrainGrace time.Duration
	// FirstRetry and MaxRetry bound the waits between attempts to reach the tracker; 0 = 100 ms and 5 s.
	FirstRetry, MaxRetry time.Duration
}

func (c *Config) setDefaults() {
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Calibrate == nil {
		c.Calibrate = func(string) {}
	}
	if c.Joined == nil {
		c.Joined = func() {}
	}
	if c.LeaseWait == 0 {
		c.LeaseWait = wire.LongestWait
	}
	if c.DrainGrace == 0 {
		c.DrainGrace = 10 * time.Second
	}
}

func (c *Config) policy() retry.Policy {
	return retry.Policy{First: c.FirstRetry, Max: c.MaxRetry, Try: 10 * time.Second}
}

// longestRejoin bounds the wait before an agent joins anew whose sessions do not last.
const longestRejoin = 30 * time.Second

// Run is the life of an agent: it joins, works, and joins again whenever the tracker forgot it, until ctx ends. It
// then lets held work end within the grace, hands the rest back and leaves. Run returns nil after such an end, and an
// error when the tracker refuses the agent.
func Run(ctx context.Context, cfg Config) error {
	cfg.setDefaults()
	log := cfg.Logger.With("agent", cfg.Spec.GetName())
	client := tilthv1.NewAgentServiceClient(cfg.Conn)
	backoff := retry.Backoff{Policy: retry.Policy{Max: longestRejoin}}
	for {
		s := newSession(&cfg, client, log)
		if err := s.join(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return refused(&cfg, err)
		}
		log.Info("joined the tracker", "slots", cfg.Slots)
		cfg.Joined()
		began := time.Now()
		s.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		log.Warn("session void, joining again")
		// Two agents of one name would void each other for ever: a session that did not last is a reason to wait. And
		// a tracker that forgot one agent may have forgotten all: they come back over the time between two heartbeats.
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		backoff.Policy.First = s.interval
		if backoff.Wait(ctx) != nil {
			return nil
		}
	}
}

// refused explains why the tracker does not take the agent.
func refused(cfg *Config, err error) error {
	addr := ""
	if c, is := cfg.Conn.(*grpc.ClientConn); is {
		addr = strings.TrimPrefix(c.Target(), trackersScheme+":///")
	}
	explained := wire.Explain(addr, "join the tracker as "+cfg.Spec.GetName(), err)
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%w: give it a token or certificate of role agent (--token-file, --tls-cert)", explained)
	}
	return explained
}

// Report repeats a call that reports on a lease until the tracker has answered, or ctx ends. It is safe since every
// report is: the tracker knows one that it has accepted. An error for which Stale holds means that the lease was lost.
func Report(ctx context.Context, log *slog.Logger, what string, call func(context.Context) error) error {
	return retry.Do(ctx, log, retry.Policy{}, what, call)
}

// Stale says whether err is the tracker's refusal of a lease that is no longer held: the work is to be dropped.
func Stale(err error) bool { return wire.Reason(err) == wire.ReasonStaleLease }

// MissingArtifact says whether err is the tracker's refusal of a build whose artifacts it does not have (any more):
// they are to be uploaded again, and the report repeated.
func MissingArtifact(err error) bool { return wire.Reason(err) == wire.ReasonMissingArtifact }
