package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Causes of the end of a handler's context; see context.Cause.
var (
	// ErrDropped means that the tracker revoked the lease: it was cancelled or lost.
	ErrDropped = errors.New("lease dropped by the tracker")
	// ErrVoidSession means that the tracker forgot this agent and its leases.
	ErrVoidSession = errors.New("session void")
	// ErrDraining means that the agent is stopping and its grace period is over.
	ErrDraining = errors.New("agent is stopping")
)

// Handler does leased work.
type Handler interface {
	// Handle does the work of one lease and reports it (see Report). It returns nil once the report was
	// accepted. For any other error, the agent reports the attempt as failed on its side. ctx ends when the
	// lease is dropped or the agent stops. Handle must then return promptly, with any error.
	Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error
}

// HandlerFunc adapts a function to a Handler.
type HandlerFunc func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	return f(ctx, work)
}

// Config configures an agent. Conn, Spec and Handler are required; all other fields have defaults.
type Config struct {
	// Conn is the connection to the tracker; see Dial.
	Conn grpc.ClientConnInterface
	Spec *tilthv1.AgentSpec
	// Handler is called concurrently if Slots is above 1.
	Handler Handler
	// Calibrate, if set, is called when the tracker requests a calibration in a session, possibly again
	// before it is reported. It must not block.
	Calibrate func(session string)
	// MachineHeldBy, if set, names the processes that keep the agent from its machine, or is empty. Changes are
	// reported at once.
	MachineHeldBy func() string
	// Joined, if set, is called whenever the agent has joined.
	Joined func()
	// Slots is the number of concurrent leases; 0 means 1.
	Slots int
	// Logger receives log messages; nil discards them.
	Logger *slog.Logger
	// LeaseWait is the time that one request for work waits; 0 means 1 min.
	LeaseWait time.Duration
	// DrainGrace is the time that held work may take when the agent stops; 0 means 10 s.
	DrainGrace time.Duration
	// FirstRetry and MaxRetry bound the delays between attempts to reach the tracker; 0 means 100 ms and 5 s.
	FirstRetry, MaxRetry time.Duration
}

func (c *Config) setDefaults() {
	c.Slots = cmp.Or(c.Slots, 1)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Calibrate == nil {
		c.Calibrate = func(string) {}
	}
	if c.Joined == nil {
		c.Joined = func() {}
	}
	c.LeaseWait = cmp.Or(c.LeaseWait, wire.LongestWait)
	c.DrainGrace = cmp.Or(c.DrainGrace, 10*time.Second)
}

func (c *Config) policy() retry.Policy {
	return retry.Policy{First: c.FirstRetry, Max: c.MaxRetry, Try: 10 * time.Second}
}

// longestRejoin bounds the delay before an agent with short-lived sessions joins again.
const longestRejoin = 30 * time.Second

// Run runs an agent until ctx ends: it joins, works, and joins again whenever the tracker has forgotten it.
// At the end it lets held work finish within the grace period, returns the other leases, and leaves. Run
// returns nil after such an end, or an error if the tracker refuses the agent.
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
		// Two agents with the same name would void each other's sessions forever, so a short session causes a
		// delay. A tracker that forgot one agent may have forgotten all of them, so their return is spread
		// over a heartbeat interval.
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		backoff.Policy.First = s.interval
		if backoff.Wait(ctx) != nil {
			return nil
		}
	}
}

// refused explains why the tracker refuses the agent.
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

// Report retries a call that reports on a lease until the tracker answers or ctx ends. Retries are safe
// because the tracker recognises reports that it has accepted. If Stale(err) holds, the lease was lost.
func Report(ctx context.Context, log *slog.Logger, what string, call func(context.Context) error) error {
	return retry.Do(ctx, log, retry.Policy{}, what, call)
}

// Stale reports whether err means that the lease is no longer held. The work must then be dropped.
func Stale(err error) bool { return wire.Reason(err) == wire.ReasonStaleLease }

// MissingArtifact reports whether err means that the tracker lacks artifacts of a build, for example after an
// eviction. They must be uploaded again before the report is retried.
func MissingArtifact(err error) bool { return wire.Reason(err) == wire.ReasonMissingArtifact }

// reportFailure reports that an attempt failed on the agent's side, so that it is retried immediately. A
// tuner's failure ends its job, because the same search would fail again.
func (s *session) reportFailure(ctx context.Context, work *tilthv1.LeaseWorkResponse, cause error) error {
	token := work.GetLease()
	reason := FailureMessage(cause.Error())
	return Report(ctx, s.log, "report failure", func(ctx context.Context) (err error) {
		switch work.GetWork().(type) {
		case *tilthv1.LeaseWorkResponse_Search:
			_, err = tilthv1.NewSearchServiceClient(s.cfg.Conn).FinishJob(ctx, &tilthv1.FinishJobRequest{
				Lease: token, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: reason,
			})
		case *tilthv1.LeaseWorkResponse_Build:
			_, err = tilthv1.NewBuildServiceClient(s.cfg.Conn).ReportBuild(ctx, &tilthv1.ReportBuildRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: reason,
			})
		case *tilthv1.LeaseWorkResponse_Run:
			_, err = tilthv1.NewRunServiceClient(s.cfg.Conn).ReportRun(ctx, &tilthv1.ReportRunRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: reason,
			})
		case *tilthv1.LeaseWorkResponse_Model:
			_, err = tilthv1.NewSearchServiceClient(s.cfg.Conn).ReportModel(ctx, &tilthv1.ReportModelRequest{Lease: token, InfraMessage: reason})
		case *tilthv1.LeaseWorkResponse_Measure:
			_, err = tilthv1.NewMeasureServiceClient(s.cfg.Conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
				Lease: token, InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: reason,
			})
		}
		return err
	})
}

// FarmError is a failure to transfer artifacts. Neither the agent nor its work is the cause.
type FarmError struct{ Cause error }

func (e *FarmError) Error() string { return e.Cause.Error() }

func (e *FarmError) Unwrap() error { return e.Cause }

// FailureClass returns FARM_INFRA for errors caused by a Farm failure, and own for all others.
func FailureClass(err error, own tilthv1.ErrorClass) tilthv1.ErrorClass {
	if _, is := errors.AsType[*FarmError](err); is {
		return tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA
	}
	return own
}

// FailureMessage sanitizes a text that may come from a compiler or a candidate: it returns the start of the first
// line, with unprintable characters, such as terminal escape sequences, replaced by blanks. The wire only
// accepts UTF-8.
func FailureMessage(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(humanize.Printable(line[:min(len(line), wire.TextBytes)], ""))
}

// tooLong returns an error for a message that exceeds the tracker's limit, before it is sent.
func tooLong(method string, message any) error {
	m, is := message.(proto.Message)
	limit := wire.RequestBytes(method)
	if !is || limit == 0 {
		return nil
	}
	if n := proto.Size(m); n > limit {
		return status.Errorf(codes.ResourceExhausted, "%s takes messages of at most %d bytes, and this one has %d", path.Base(method), limit, n)
	}
	return nil
}

func checkLength(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := tooLong(method, req); err != nil {
		return err
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

func checkLengths(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	return lengthChecked{stream, method}, nil
}

// lengthChecked is a stream that checks the length of messages before sending.
type lengthChecked struct {
	grpc.ClientStream
	method string
}

// SendMsg implements grpc.ClientStream.
func (s lengthChecked) SendMsg(m any) error {
	if err := tooLong(s.method, m); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}
