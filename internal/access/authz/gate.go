package authz

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Holdings looks up owners of jobs and sessions. False means that the job or session does not exist; the call itself
// then reports that.
type Holdings interface {
	// JobOwner returns the owner of a job. An error means that the owner is unknown; its message is for the caller.
	JobOwner(id string) (owner Owner, is bool, err error)
	// Session returns an open session.
	Session(session string) (s Session, is bool)
	// Sessions returns the number of open sessions of an identity.
	Sessions(identity string) int
}

// Owner is the owner of a job.
type Owner struct {
	Name string
	// Private jobs are visible only to their owner and to admins.
	Private bool
}

// Session describes who opened an agent's session.
type Session struct {
	// Agent is the name that the agent joined with, Identity the name of the caller who opened the session.
	Agent, Identity string
}

// Config configures a Gate. Without Tokens, OIDC and Certificates the gate is open: anonymous callers may do
// everything.
type Config struct {
	// Tokens are the accepted bearer tokens of the farm; nil = none.
	Tokens *access.TokenFile
	// OIDC verifies tokens of an issuer; nil = such tokens are refused.
	OIDC *oidc.Verifier
	// Certificates accepts verified client certificates as identities.
	Certificates bool
	// PassesOn stores the tokens of browser sessions, for ForwardedAuthorization.
	PassesOn bool
	// Audit is the audit log; nil = no audit log.
	Audit *access.AuditLog
	// CallsPerSecond is the average rate of calls that each identity may make; each session of its agents adds to it.
	// On an open tracker it applies to each address except this machine's. 0 = no limit.
	CallsPerSecond float64
	// Holdings looks up owners of jobs and sessions.
	Holdings Holdings
	// Logger logs refusals; may be nil.
	Logger *slog.Logger
	// Refused, if set, is called with the code of each refusal.
	Refused func(codes.Code)
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Gate admits calls. Its methods may be called concurrently.
type Gate struct {
	cfg   Config
	rates rates
	// strangers and known limit the logged refusals of unauthenticated and authenticated callers.
	strangers, known refusalLimiter
	sessions         sessionTable
	attempts         rates
	formKey          []byte // key of the form tokens
}

// New returns a Gate.
func New(cfg Config) *Gate {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Refused == nil {
		cfg.Refused = func(codes.Code) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return &Gate{
		cfg:       cfg,
		formKey:   key,
		strangers: refusalLimiter{perKey: strangerRefusals, keys: strangerHosts, whose: "of callers who are not known"},
		known:     refusalLimiter{perKey: knownRefusals, keys: knownCallers, whose: "of callers who are known, but call in vain time and again,"},
	}
}

// open reports whether the tracker admits anonymous callers.
func (g *Gate) open() bool { return !g.takesTokens() && !g.cfg.Certificates }

// takesTokens reports whether tokens of any kind are accepted.
func (g *Gate) takesTokens() bool { return g.cfg.Tokens != nil || g.cfg.OIDC != nil }

// call is the state of one call that passes the gate.
type call struct {
	verb   string        // JobService.CancelJob
	rule   *tilthv1.Call // nil for unknown methods
	caller caller
	began  time.Time
	agent  string // agent that owns the session, for the log
	// hidden is why the handler is skipped although the caller receives an answer; nil = the handler runs.
	hidden error
}

type callKey struct{}

// Admit authenticates and authorises a call by its headers. It never blocks, since the connection's reader calls it:
// while the issuer's keys are being fetched, callers are asked to retry (see wire.ReasonIssuer). The returned context
// carries the caller's identity, which the interceptors need.
func (g *Gate) Admit(ctx context.Context, method string, header metadata.MD) (context.Context, error) {
	c := &call{verb: verb(method), began: g.cfg.Now(), caller: caller{from: address(ctx)}}
	c.rule = wire.Call(method)
	err := g.admit(ctx, c, header)
	if often := g.checkRate(c); often != nil && (err == nil || !c.caller.proved) {
		err = often
	}
	if _, later := wire.RetryAfter(err); later && wire.Reason(err) == wire.ReasonIssuer {
		return nil, err // not refused yet
	}
	if err != nil {
		g.refused(c, nil, err)
		return nil, err
	}
	if c.caller.proved {
		ctx = access.With(ctx, c.caller.Identity)
	}
	return context.WithValue(ctx, callKey{}, c), nil
}

func (g *Gate) admit(ctx context.Context, c *call, header metadata.MD) error {
	if g.open() || c.rule.GetPublic() {
		return nil
	}
	if by, is := ctx.Value(pageKey{}).(caller); is {
		c.caller = by
		return c.permitted()
	}
	proof := proof{authorization: header.Get("authorization")}
	if p, is := peer.FromContext(ctx); is {
		proof.certificate = verifiedCertificate(p.AuthInfo)
	}
	var err error
	if c.caller, err = g.identify(ctx, c.caller.from, proof); err != nil {
		return err
	}
	return c.permitted()
}

// permitted returns an error unless the caller's role may call the method.
func (c *call) permitted() error {
	if c.rule == nil { // no such service, or a method without options
		return status.Errorf(codes.Unimplemented, "%s is not served here", c.verb)
	}
	if allowed := rolesOf(c.rule); !slices.Contains(allowed, c.caller.Role) {
		return status.Errorf(codes.PermissionDenied, "%s has the role %s, which may not call %s: that is for %s",
			c.caller.Name, c.caller.Role, c.verb, roleNames(allowed))
	}
	return nil
}

// checkOwnership refuses a request that concerns another identity's job or session.
func (g *Gate) checkOwnership(c *call, req any) error {
	if g.open() && c.rule.GetAudit() == tilthv1.Audit_AUDIT_UNSPECIFIED {
		return nil // nothing to check or to log
	}
	switch c.rule.GetOwn() {
	case tilthv1.Ownership_OWNERSHIP_JOB:
		if g.open() || c.caller.Role == access.Admin {
			return nil
		}
		id := jobOf(req)
		owner, is, err := g.cfg.Holdings.JobOwner(id)
		if err != nil || !is || owner.Name == c.caller.Name {
			return err
		}
		if owner.Private && c.rule.GetGone() {
			c.hidden = status.Errorf(codes.PermissionDenied, "job %s is private and belongs to %q: reported as not found to %s", id, owner.Name, c.caller.Name)
			return nil
		}
		if owner.Private { // answered like a job that never existed
			return status.Errorf(codes.NotFound, "job %q does not exist", id)
		}
		return status.Errorf(codes.PermissionDenied, "job %s belongs to %q, and you are %s: ask the owner or an admin", id, owner.Name, c.caller.Name)
	case tilthv1.Ownership_OWNERSHIP_SESSION:
		s, is := g.cfg.Holdings.Session(sessionOf(req))
		c.agent = s.Agent
		if is && !g.open() && s.Identity != c.caller.Name {
			return status.Errorf(codes.PermissionDenied, "the session belongs to another identity than %s", c.caller.Name)
		}
	}
	return nil
}

// ready refuses calls that must be audited while the audit log cannot be written.
func (g *Gate) ready(c *call) error {
	if c.rule.GetAudit() != tilthv1.Audit_AUDIT_REQUIRED {
		return nil
	}
	if err := g.cfg.Audit.Ready(); err != nil {
		g.cfg.Refused(codes.Unavailable)
		return wire.Refuse(codes.Unavailable, wire.ReasonUnwritten, "%v: nothing is changed until it can", err)
	}
	return nil
}

// ServerOptions returns the interceptors of the gate; Admit must be called from the server's tap handle.
func (g *Gate) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(g.Unary), grpc.ChainStreamInterceptor(g.Stream)}
}

// Unary is the unary server interceptor.
func (g *Gate) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c, is := ctx.Value(callKey{}).(*call)
	if !is {
		return nil, notAdmitted(info.FullMethod)
	}
	if err := g.checkOwnership(c, req); err != nil {
		g.refused(c, req, err)
		return nil, err
	}
	if err := g.ready(c); err != nil {
		return nil, err
	}
	response, err := handle(ctx, req)
	g.done(c, req, response, cmp.Or(err, c.hidden))
	if err == nil && c.caller.valid != nil {
		err = c.caller.valid() // the token may have been revoked during a long poll
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// notAdmitted is the error of a server without the tap handle.
func notAdmitted(method string) error {
	return status.Errorf(codes.Internal, "%s was not admitted: the server lacks its tap", method)
}

// verb returns the short form of a method: JobService.CancelJob.
func verb(method string) string {
	service, name := path.Split(strings.TrimPrefix(method, "/"))
	service = strings.TrimSuffix(service, "/")
	return service[strings.LastIndexByte(service, '.')+1:] + "." + name
}

// rolesOf returns the roles that may make a call.
func rolesOf(c *tilthv1.Call) []access.Role {
	all := [...]access.Role{
		tilthv1.Role_ROLE_READ_ONLY: access.ReadOnly, tilthv1.Role_ROLE_CLIENT: access.Client,
		tilthv1.Role_ROLE_AGENT: access.Agent, tilthv1.Role_ROLE_ADMIN: access.Admin,
	}
	roles := make([]access.Role, 0, len(all))
	for _, r := range c.GetRoles() {
		roles = append(roles, all[r])
	}
	return roles
}

func roleNames(roles []access.Role) string {
	return cmp.Or(humanize.Join(roles, ", ", func(r access.Role) string { return string(r) }), "nobody")
}

// address returns the peer's address, or "unix" for a local socket.
func address(ctx context.Context) string {
	p, is := peer.FromContext(ctx)
	if !is || p.Addr == nil {
		return ""
	}
	if p.Addr.Network() == "unix" {
		return "unix"
	}
	return fmt.Sprint(p.Addr)
}

// Stream is the stream server interceptor.
func (g *Gate) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c, is := ss.Context().Value(callKey{}).(*call)
	if !is {
		return notAdmitted(info.FullMethod)
	}
	if err := g.ready(c); err != nil {
		return err
	}
	s := &guarded{ServerStream: ss, gate: g, call: c, single: !info.IsClientStream}
	err := handle(srv, s)
	if s.refusal != nil {
		err = s.refusal
		g.refused(c, s.request, err)
		return err
	}
	g.done(c, s.request, s.answer, err)
	return err
}

// guarded is a stream that ends when its caller's credentials become invalid. They are checked at each message, so an
// idle stream may outlive them but transfers nothing.
type guarded struct {
	grpc.ServerStream
	gate *Gate
	call *call
	// single is set for streams with one request, whose ownership may have to be checked.
	single  bool
	request any
	// answer is the last message sent.
	answer  any
	refusal error
}

func (s *guarded) valid() error {
	if s.call.caller.valid == nil {
		return nil
	}
	s.refusal = s.call.caller.valid()
	return s.refusal
}

// RecvMsg implements grpc.ServerStream.
func (s *guarded) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if s.single {
		s.request = m
		if s.refusal = s.gate.checkOwnership(s.call, m); s.refusal != nil {
			return s.refusal
		}
	}
	return s.valid()
}

// SendMsg implements grpc.ServerStream.
func (s *guarded) SendMsg(m any) error {
	if err := s.valid(); err != nil {
		return err
	}
	s.answer = m
	return s.ServerStream.SendMsg(m)
}
