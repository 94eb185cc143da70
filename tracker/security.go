package tracker

import (
	"context"
	"crypto/tls"
	"net"
	"path"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/access/audit"
	"github.com/tilth-dev/tilth/access/authorisation"
	"github.com/tilth-dev/tilth/access/certs"
	"github.com/tilth-dev/tilth/access/connlimit"
	"github.com/tilth-dev/tilth/access/tokens"
	"github.com/tilth-dev/tilth/internal/wire/bounds"
)

// Security is how a tracker is closed. Its zero value is open, but keeps the default limits.
type Security struct {
	// TLS is the tracker's side of it; nil = calls and pages are not encrypted.
	TLS *certs.Server
	// Certificates has client certificates stand for identities.
	Certificates bool
	// Tokens are the bearer tokens that are accepted; nil = none.
	Tokens *tokens.File
	// Audit gets what was done and what was refused; nil = nobody does. The caller closes it after the tracker.
	Audit *audit.Log
	// CallsPerSecond is how often an identity may call; 0 = nobody counts.
	CallsPerSecond float64
	// Limits bound what a peer may hold.
	Limits connlimit.Limits
}

// securityMetrics tell what requests take, and when what closes the tracker ends to be valid.
func (t *Tracker) securityMetrics() []prometheus.Collector {
	held := func(name, help string, bytes func(*connlimit.Guard) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if g := t.guard.Load(); g != nil {
				return float64(bytes(g))
			}
			return 0
		})
	}
	all := []prometheus.Collector{
		held("tilth_tracker_request_bytes", "Requests that are on their way or being answered, as they come over the wire.", (*connlimit.Guard).HeldBytes),
		held("tilth_tracker_answer_bytes", "Answers that are being made, or that their peers have not read.", (*connlimit.Guard).AnswerBytes),
	}
	s := t.cfg.Security
	if s.TLS == nil {
		return all
	}
	return append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tilth_tracker_certificate_expiry_timestamp_seconds", Help: "When the tracker's certificate expires, as Unix time.",
	}, func() float64 { return float64(s.TLS.NotAfter().Unix()) }))
}

// certificateAge is how long a connection lasts whose client proved itself when it began: an authority that is trusted
// no longer loses its clients within so long.
const certificateAge = time.Hour

func (s Security) limits() connlimit.Limits {
	l := s.Limits
	if s.Certificates && l.Age == 0 {
		l.Age = certificateAge
	}
	return l
}

// guard bounds a listener's connections.
func (s Security) guard(lis net.Listener, refused func(net.Addr)) net.Listener {
	return s.limits().Listen(lis, refused)
}

// guardWeb bounds and encrypts the connections of the pages' listener, if there is one.
func (s Security) guardWeb(lis net.Listener, refused func(net.Addr)) net.Listener {
	if lis == nil {
		return nil
	}
	lis = s.guard(lis, refused)
	if s.TLS != nil {
		lis = tls.NewListener(lis, s.TLS.Config("http/1.1"))
	}
	return lis
}

func (t *Tracker) newGate() *authorisation.Gate {
	s := t.cfg.Security
	return authorisation.New(authorisation.Config{
		Tokens: s.Tokens, Certificates: s.Certificates, Audit: s.Audit, Holdings: holdings{t}, Logger: t.log, Now: t.cfg.Now,
		CallsPerSecond: s.CallsPerSecond,
		Refused:        func(code codes.Code) { t.metrics.refusedCalls.WithLabelValues(code.String()).Inc() },
	})
}

// newGuard makes what keeps the server's peers within limits.
func (t *Tracker) newGuard(g *authorisation.Gate) *connlimit.Guard {
	s := t.cfg.Security
	cfg := connlimit.Config{Limits: s.limits(), Admit: admitBy(g), Check: t.bounds.Wire,
		NoRoom: func(of connlimit.Room) { t.metrics.refused.WithLabelValues("load_" + string(of)).Inc() },
		Refused: func(method string, err error) {
			t.metrics.calls.WithLabelValues(path.Base(method), status.Code(err).String()).Inc()
		},
	}
	if s.TLS != nil {
		cfg.TLS = s.TLS.Config("h2")
	}
	return connlimit.New(cfg)
}

// admitBy has a gate decide about calls, and tells the guard who calls and how long the method's messages may be.
func admitBy(g *authorisation.Gate) connlimit.Admit {
	return func(ctx context.Context, method string, header metadata.MD) (context.Context, connlimit.Admission, error) {
		ctx, err := g.Admit(ctx, method, header)
		if err != nil {
			return nil, connlimit.Admission{}, err
		}
		caller, _ := access.From(ctx)
		return ctx, connlimit.Admission{
			Caller: caller.Name, Stranger: authorisation.Public(method),
			MessageBytes: bounds.RequestBytes(method), AnswerBytes: bounds.AnswerBytes(method),
		}, nil
	}
}

// refusedPeer tells of a connection beyond the limits.
func (t *Tracker) refusedPeer(addr net.Addr) {
	t.metrics.refusedPeers.Inc()
	t.log.Debug("connection refused: there are too many", "from", addr)
}

// holdings tells the gate whose a job or a session is.
type holdings struct{ *Tracker }

// members counts the sessions of each identity, for those who may not wait for the tracker's lock.
type members struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *members) add(identity string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	if m.counts[identity] += n; m.counts[identity] == 0 {
		delete(m.counts, identity)
	}
}

// Sessions implements authorisation.Holdings.
func (h holdings) Sessions(identity string) int {
	h.members.mu.Lock()
	defer h.members.mu.Unlock()
	return h.members.counts[identity]
}

// JobOwner implements authorisation.Holdings.
func (h holdings) JobOwner(id string) (string, bool) {
	h.mu.Lock()
	j := h.jobs[id]
	h.mu.Unlock()
	if j != nil {
		return j.spec.GetOwner(), true
	}
	owner, err := h.db.JobOwner(id)
	return owner, err == nil
}

// Session implements authorisation.Holdings.
func (h holdings) Session(session string) (authorisation.Session, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.sessions[session]
	if a == nil {
		return authorisation.Session{}, false
	}
	return authorisation.Session{Agent: a.spec.GetName(), Identity: a.identity}, true
}
