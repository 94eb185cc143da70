package agent

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// partingTimeout bounds each of the last calls of a stopping agent, because the tracker may be gone, too.
const partingTimeout = 3 * time.Second

// lookEvery is the interval at which an agent looks whether it waits for its machine.
const lookEvery = 500 * time.Millisecond

// session is the time between a Join and the loss of its session.
type session struct {
	cfg      *Config
	client   tilthv1.AgentServiceClient
	log      *slog.Logger
	id       string
	interval time.Duration

	mu      sync.Mutex
	held    map[string]*held // by subject
	stopped error            // why no new work may start; nil while it may
}

// held is a lease in progress.
type held struct {
	token *tilthv1.LeaseToken
	drop  context.CancelCauseFunc
}

func newSession(cfg *Config, client tilthv1.AgentServiceClient, log *slog.Logger) *session {
	return &session{cfg: cfg, client: client, log: log, held: map[string]*held{}}
}

func (s *session) join(ctx context.Context) error {
	calibrate := false
	err := retry.Do(ctx, s.log, s.cfg.policy(), "Join", func(ctx context.Context) error {
		joined, err := s.client.Join(ctx, &tilthv1.JoinRequest{Spec: s.cfg.Spec})
		s.id = joined.GetSession()
		s.interval = max(joined.GetHeartbeatInterval().AsDuration(), time.Millisecond)
		calibrate = joined.GetCalibrate()
		return err
	})
	if err == nil && calibrate {
		s.cfg.Calibrate(s.id)
	}
	return err
}

// run works until the session is void or, after ctx ended, all held work has ended.
func (s *session) run(ctx context.Context) {
	// life outlasts ctx by the drain and ends early when the session is void.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	context.AfterFunc(life, stopAsking)

	var beat, slots sync.WaitGroup
	beat.Go(func() { s.beat(life, end) })
	for range s.cfg.Slots {
		slots.Go(func() { s.slot(asking, life, end) })
	}
	idle := make(chan struct{})
	go func() { slots.Wait(); close(idle) }()
	s.drain(ctx, life, idle)
	if cause := context.Cause(life); cause != nil { // it may not have reached the leases' contexts yet
		s.stop(cause)
	} else {
		s.stop(ErrDraining)
	}
	<-idle
	if life.Err() == nil {
		s.leave(life)
	}
	end(nil)
	beat.Wait()
}

// drain returns when all work has ended, the grace period after ctx is over, or the session is void.
func (s *session) drain(ctx, life context.Context, idle <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-life.Done():
		return
	}
	select {
	case <-time.After(s.cfg.DrainGrace):
	case <-idle:
	case <-life.Done():
	}
}

// beat sends heartbeats until life ends. It ends life if the tracker does not know the session.
func (s *session) beat(life context.Context, end context.CancelCauseFunc) {
	// Spread the heartbeats of agents that joined at the same time.
	next := time.NewTimer(rand.N(s.interval))
	defer next.Stop()
	var complaints retry.RepeatedErrors
	look := time.Tick(lookEvery)
	heldBy := ""
	for {
		select {
		case <-life.Done():
			return
		case <-next.C:
		case <-look:
			if (s.machineHeldBy() == "") == (heldBy == "") {
				continue
			}
		}
		heldBy = s.machineHeldBy()
		began := time.Now()
		ctx, cancel := context.WithTimeout(life, 2*s.interval)
		response, err := s.client.Heartbeat(ctx, &tilthv1.HeartbeatRequest{Session: s.id, Leases: s.tokens(), MachineHeldBy: heldBy})
		cancel()
		switch {
		case err == nil:
			complaints = 0
			s.drop(response.GetDropped())
			if every := response.GetHeartbeatInterval().AsDuration(); every > 0 {
				s.interval = every
			}
			if response.GetCalibrate() {
				s.cfg.Calibrate(s.id)
			}
		case wire.Reason(err) == wire.ReasonVoidSession:
			end(ErrVoidSession)
			return
		case life.Err() == nil && complaints.Due():
			s.log.Warn("heartbeat failed, trying again", "times", int(complaints), "error", wire.ErrorText(err))
		}
		next.Reset(max(0, s.interval-time.Since(began))) // independent of the tracker's response time
	}
}

func (s *session) machineHeldBy() string {
	if s.cfg.MachineHeldBy == nil {
		return ""
	}
	return s.cfg.MachineHeldBy()
}

// slot requests and does work, one lease after another.
func (s *session) slot(asking, life context.Context, end context.CancelCauseFunc) {
	backoff := retry.Backoff{Policy: s.cfg.policy()}
	var complaints retry.RepeatedErrors
	for next := asking; asking.Err() == nil; {
		work, err := s.ask(next)
		next = asking
		switch {
		case err == nil:
			backoff.Reset()
			complaints = 0
			if work.GetLease() != nil {
				began := time.Now()
				s.handle(life, work)
				next = after(asking, work.GetLease().GetSubject(), time.Since(began))
			}
		case wire.Reason(err) == wire.ReasonVoidSession:
			end(ErrVoidSession)
			return
		case asking.Err() == nil:
			if complaints.Due() {
				s.log.Warn("request for work failed, trying again", "times", int(complaints), "error", wire.ErrorText(err))
			}
			_ = backoff.Wait(asking)
		}
	}
}

func (s *session) ask(ctx context.Context) (*tilthv1.LeaseWorkResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.LeaseWait+10*time.Second)
	defer cancel()
	return s.client.LeaseWork(ctx, &tilthv1.LeaseWorkRequest{Session: s.id, Wait: durationpb.New(s.cfg.LeaseWait)})
}

// handle does the work of one lease and makes sure that the lease ends.
func (s *session) handle(life context.Context, work *tilthv1.LeaseWorkResponse) {
	token := work.GetLease()
	ctx, drop := context.WithCancelCause(context.WithValue(life, subjectKey{}, token.GetSubject()))
	defer drop(nil)
	h := &held{token: token, drop: drop}
	s.hold(h)
	defer s.release(h)
	log := s.log.With("subject", token.GetSubject(), "attempt", token.GetAttempt())
	err := s.cfg.Handler.Handle(ctx, work)
	switch {
	case err == nil:
	case Stale(err) || errors.Is(context.Cause(ctx), ErrDropped) || life.Err() != nil:
		log.Info("work dropped", "cause", context.Cause(ctx), "error", err)
	case errors.Is(context.Cause(ctx), ErrDraining):
		s.giveBack(life, token)
	default:
		log.Error("work failed", "error", err)
		if err := s.reportFailure(ctx, work, err); err != nil {
			log.Warn("failure not reported", "error", err)
		}
	}
}

// hold adds a lease to the heartbeats.
func (s *session) hold(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[h.token.GetSubject()] = h
	if s.stopped != nil {
		h.drop(s.stopped)
	}
}

// release removes a lease from the heartbeats, unless another slot has received the same work again; then
// that lease is listed.
func (s *session) release(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.token.GetSubject()] == h {
		delete(s.held, h.token.GetSubject())
	}
}

func (s *session) giveBack(life context.Context, token *tilthv1.LeaseToken) {
	ctx, cancel := context.WithTimeout(life, partingTimeout)
	defer cancel()
	if _, err := s.client.ReturnLease(ctx, &tilthv1.ReturnLeaseRequest{Lease: token}); err != nil {
		s.log.Warn("lease not handed back; it will expire", "subject", token.GetSubject(), "error", err)
	}
}

func (s *session) leave(life context.Context) {
	ctx, cancel := context.WithTimeout(life, partingTimeout)
	defer cancel()
	_, err := s.client.Leave(ctx, &tilthv1.LeaveRequest{Session: s.id})
	if err != nil && life.Err() == nil { // a heartbeat after the leave ends life before the leave is answered
		s.log.Warn("leave failed; session will expire", "error", err)
	}
}

// tokens lists the leases in progress.
func (s *session) tokens() (out []*tilthv1.LeaseToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		out = append(out, h.token)
	}
	return out
}

// drop cancels the work of leases that the tracker revoked.
func (s *session) drop(tokens []*tilthv1.LeaseToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tokens {
		if h := s.held[t.GetSubject()]; h != nil && h.token.GetAttempt() == t.GetAttempt() {
			h.drop(ErrDropped)
		}
	}
}

// stop cancels the work of all leases, including any that is about to start.
func (s *session) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = cause
	for _, h := range s.held {
		h.drop(cause)
	}
}
