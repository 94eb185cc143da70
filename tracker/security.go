package tracker

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/access/audit"
	"github.com/tilth-dev/tilth/access/certs"
	"github.com/tilth-dev/tilth/access/gate"
	"github.com/tilth-dev/tilth/access/guard"
	"github.com/tilth-dev/tilth/access/tokens"
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
	// Limits bound what a peer may hold.
	Limits guard.Limits
}

// metrics tell when what closes the tracker ends to be valid.
func (s Security) metrics() []prometheus.Collector {
	if s.TLS == nil {
		return nil
	}
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tilth_tracker_certificate_expiry_timestamp_seconds", Help: "When the tracker's certificate expires, as Unix time.",
	}, func() float64 { return float64(s.TLS.NotAfter().Unix()) })}
}

// certificateAge is how long a connection lasts whose client proved itself when it began: an authority that is trusted no
// longer loses its clients within so long.
const certificateAge = time.Hour

func (s Security) limits() guard.Limits {
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

func (t *Tracker) newGate() *gate.Gate {
	s := t.cfg.Security
	return gate.New(gate.Config{
		Tokens: s.Tokens, Certificates: s.Certificates, Audit: s.Audit, Holdings: holdings{t}, Logger: t.log, Now: t.cfg.Now,
		Refused: func(code codes.Code) { t.metrics.refusedCalls.WithLabelValues(code.String()).Inc() },
	})
}

// refusedPeer tells of a connection beyond the limits.
func (t *Tracker) refusedPeer(addr net.Addr) {
	t.metrics.refusedPeers.Inc()
	t.log.Debug("connection refused: there are too many", "from", addr)
}

// holdings tells the gate whose a job or a session is.
type holdings struct{ *Tracker }

// JobOwner implements gate.Holdings.
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

// Session implements gate.Holdings.
func (h holdings) Session(session string) (gate.Session, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.sessions[session]
	if a == nil {
		return gate.Session{}, false
	}
	return gate.Session{Agent: a.spec.GetName(), Identity: a.identity}, true
}
