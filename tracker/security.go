package tracker

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/authz"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/rpc"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Security configures access control. The zero value admits everyone but keeps the default limits.
type Security struct {
	// TLS is the server's side of TLS; nil serves calls and pages unencrypted.
	TLS *certs.Server
	// Certificates accepts client certificates as identities.
	Certificates bool
	// Tokens are the farm's own bearer tokens; nil accepts none.
	Tokens *access.TokenFile
	// OIDC verifies tokens of an issuer; nil accepts none. The caller closes it after the tracker.
	OIDC *oidc.Verifier
	// Audit records actions and refusals; nil records nothing. The caller closes it after the tracker.
	Audit *access.AuditLog
	// CallsPerSecond limits the calls of each identity; 0 means no limit.
	CallsPerSecond float64
	// Limits bound the resources of each peer.
	Limits connlimit.Limits
}

// certificateAge is the lifetime of a connection with a client certificate. Clients of an authority that is no longer
// trusted are gone after that time.
const certificateAge = time.Hour

func (s Security) limits() connlimit.Limits {
	l := s.Limits
	if s.Certificates && l.Age == 0 {
		l.Age = certificateAge
	}
	return l
}

// guard limits the connections of the calls' listener.
func (s Security) guard(lis net.Listener, refused func(net.Addr, error)) net.Listener {
	return s.limits().Listen(lis, true, refused)
}

// guardWeb limits and encrypts the connections of the pages' listener, if any.
func (s Security) guardWeb(lis net.Listener, refused func(net.Addr, error)) net.Listener {
	if lis == nil {
		return nil
	}
	l := s.limits().WithDefaults()
	l.Connections = l.WebConnections
	lis = l.Listen(lis, false, refused)
	if s.TLS != nil {
		lis = tls.NewListener(lis, s.TLS.Config("http/1.1"))
	}
	return lis
}

// newGuard returns a guard that enforces the limits of the server's peers.
func (s Security) newGuard(cfg connlimit.Config) *connlimit.Guard {
	cfg.Limits = s.limits()
	if s.TLS != nil {
		cfg.TLS = s.TLS.Config("h2")
	}
	return connlimit.New(cfg)
}

// admitBy lets a gate decide about calls, and passes the caller and the method's message bounds to the guard.
func admitBy(g *authz.Gate) connlimit.Admit {
	return func(ctx context.Context, method string, header metadata.MD) (context.Context, connlimit.Admission, error) {
		ctx, err := g.Admit(ctx, method, header)
		if err != nil {
			return nil, connlimit.Admission{}, err
		}
		caller, known := access.From(ctx)
		rule := wire.Call(method)
		return ctx, connlimit.Admission{
			Caller: caller.Name, Unauthenticated: rule.GetPublic(),
			// On an open tracker, any caller may be an operator, but for calls of agents only.
			Operator:     rule.GetPublic() || caller.Role == access.Admin || !known && slices.Contains(rule.GetRoles(), tilthv1.Role_ROLE_ADMIN),
			MessageBytes: wire.RequestBytes(method), AnswerBytes: wire.AnswerBytes(method),
		}, nil
	}
}

// refusals returns a function that counts refused connections and logs them, at increasing intervals.
func refusals(log *slog.Logger, count func()) func(net.Addr, error) {
	var mu sync.Mutex
	var complaints retry.RepeatedErrors
	return func(from net.Addr, why error) {
		count()
		mu.Lock()
		defer mu.Unlock()
		if !complaints.Due() {
			return
		}
		hint := "raise --max-connections or find the cause"
		if from == nil {
			hint = FilesHint
		}
		log.Warn("connection refused", "error", why, "from", from, "times", int(complaints), "hint", hint)
	}
}

// FilesHint is the remedy of a lack of file descriptors.
const FilesHint = "raise the limit on open files: ulimit -Hn, or LimitNOFILE in the unit"

// holdings answers the gate's questions about the jobs and sessions of a shard.
type holdings struct{ *coordinator.Coordinator }

// JobOwner is as in authz.Holdings.
func (h holdings) JobOwner(id string) (_ authz.Owner, is bool, err error) {
	var owner records.Owner
	var ok bool
	h.Read(func(m *state.Machine) { owner, ok = m.JobOwner(id) })
	if ok {
		return authz.Owner(owner), true, nil
	}
	owner, err = h.Store().JobOwner(id)
	if errors.Is(err, records.ErrNotFound) {
		return authz.Owner{}, false, nil
	}
	return authz.Owner(owner), err == nil, rpc.StoreError(err)
}

// Session is as in authz.Holdings.
func (h holdings) Session(session string) (out authz.Session, ok bool) {
	h.Read(func(m *state.Machine) { out.Agent, out.Identity, ok = m.Session(session) })
	return out, ok
}
