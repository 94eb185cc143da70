package authorisation

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
	"github.com/tilth-dev/tilth/internal/access/audit"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/access/tokens"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Holdings tells whose something is. An answer of false means that there is no such thing: then the call itself says
// so.
type Holdings interface {
	// JobOwner is whom a job belongs to. An error says that this is not known, in words for who asks.
	JobOwner(id string) (owner Owner, is bool, err error)
	// Session is who opened a session.
	Session(session string) (s Session, is bool)
	// Sessions counts those of an identity.
	Sessions(identity string) int
}

// Owner is whom a job belongs to.
type Owner struct {
	Name string
	// Private jobs are seen by their owner and admins alone.
	Private bool
}

// Session is an agent's time with the tracker.
type Session struct {
	// Agent is the name that it joined with, Identity that of who called.
	Agent, Identity string
}

// Config is what a gate needs. Without Tokens, OIDC and Certificates it is open: everybody may do everything, as
// nobody.
type Config struct {
	// Tokens are the farm's own bearer tokens that are accepted; nil = none.
	Tokens *tokens.File
	// OIDC tells whose tokens of an issuer are; nil = those are not accepted.
	OIDC *oidc.Verifier
	// Certificates has verified client certificates stand for identities.
	Certificates bool
	// PassesOn has the sessions of browsers keep their tokens, for PassOn.
	PassesOn bool
	// Audit gets what was done and what was refused; nil = nobody does.
	Audit *audit.Log
	// CallsPerSecond is how often an identity may call, on average; each of its agents' sessions adds to that. Where
	// nobody is asked who they are it holds for each address but this machine's. 0 = nobody counts.
	CallsPerSecond float64
	// Holdings are the tracker's.
	Holdings Holdings
	// Logger hears of refusals; nil = nobody.
	Logger *slog.Logger
	// Refused is called with the code of each refusal; nil = nothing is.
	Refused func(codes.Code)
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Gate admits calls. Its methods may be called from many goroutines.
type Gate struct {
	cfg   Config
	rates rates
	// Refusals that are written down, of strangers and of those who are known.
	strangers, known spam
	sessions         sessionTable
	attempts         rates
	formKey          []byte // of the tokens that forms carry
}

// New makes a gate.
func New(cfg Config) *Gate {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
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
		strangers: spam{perKey: strangerRefusals, keys: strangerHosts, whose: "of callers who are not known"},
		known:     spam{perKey: knownRefusals, keys: knownCallers, whose: "of callers who are known, but call in vain time and again,"},
	}
}

// open says whether nobody is asked who they are.
func (g *Gate) open() bool { return !g.takesTokens() && !g.cfg.Certificates }

// takesTokens says whether tokens of any kind prove who calls.
func (g *Gate) takesTokens() bool { return g.cfg.Tokens != nil || g.cfg.OIDC != nil }

// call is one call on its way through the gate.
type call struct {
	verb   string // JobService.CancelJob
	rule   rule
	caller caller
	began  time.Time
	agent  string // whose session it is about, where that is written down
	// hidden is why nothing is done for who is answered as if something was; nil = it is done.
	hidden error
}

type callKey struct{}

// Admit decides about a call whose headers have come. It waits for nothing, as whoever reads from the connection calls
// it: while the issuer's keys are being read, callers are told to come again (see wire.ReasonIssuer). The context that
// it returns carries the caller's identity; the interceptors need it.
func (g *Gate) Admit(ctx context.Context, method string, header metadata.MD) (context.Context, error) {
	c := &call{verb: verb(method), began: g.cfg.Now(), caller: caller{from: address(ctx)}}
	rule, known := rules[method]
	c.rule = rule
	err := g.admit(ctx, c, header, known)
	if often := g.frequent(c); often != nil && (err == nil || !c.caller.proved) {
		err = often
	}
	if putOff(err) {
		return nil, err
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

func (g *Gate) admit(ctx context.Context, c *call, header metadata.MD, known bool) error {
	if g.open() || c.rule.public {
		return nil
	}
	if by, is := ctx.Value(pageKey{}).(caller); is {
		c.caller = by
		return c.permitted(known)
	}
	proof := proof{authorization: header.Get("authorization")}
	if p, is := peer.FromContext(ctx); is {
		proof.certificate = verifiedCertificate(p.AuthInfo)
	}
	var err error
	if c.caller, err = g.identify(ctx, c.caller.from, proof); err != nil {
		return err
	}
	return c.permitted(known)
}

// permitted says whether the caller's role may call the method, if it is one that is known.
func (c *call) permitted(known bool) error {
	if !known { // a service that nobody serves, or a method that was forgotten in the rules
		return status.Errorf(codes.Unimplemented, "%s is not served here", c.verb)
	}
	if !slices.Contains(c.rule.roles, c.caller.Role) {
		return status.Errorf(codes.PermissionDenied, "%s has the role %s, which may not call %s: that is for %s",
			c.caller.Name, c.caller.Role, c.verb, roleNames(c.rule.roles))
	}
	return nil
}

// belongs refuses a request for what is another's.
func (g *Gate) belongs(c *call, req any) error {
	if g.open() && c.rule.log == refusals {
		return nil // nobody wants to know
	}
	switch c.rule.own {
	case ownJob:
		if g.open() || c.caller.Role == access.Admin {
			return nil
		}
		id := jobOf(req)
		owner, is, err := g.cfg.Holdings.JobOwner(id)
		if err != nil || !is || owner.Name == c.caller.Name {
			return err
		}
		if owner.Private && c.rule.gone {
			c.hidden = status.Errorf(codes.PermissionDenied, "job %s is private and belongs to %q: %s is told that it is gone", id, owner.Name, c.caller.Name)
			return nil
		}
		if owner.Private { // in the words about a job that there never was
			return status.Errorf(codes.NotFound, "job %q does not exist", id)
		}
		return status.Errorf(codes.PermissionDenied, "job %s belongs to %q, and you are %s: ask the owner or an admin", id, owner.Name, c.caller.Name)
	case ownSession:
		s, is := g.cfg.Holdings.Session(sessionOf(req))
		c.agent = s.Agent
		if is && !g.open() && s.Identity != c.caller.Name {
			return status.Errorf(codes.PermissionDenied, "the session belongs to another identity than %s", c.caller.Name)
		}
	}
	return nil
}

// ready refuses what has to be written down while that is impossible.
func (g *Gate) ready(c *call) error {
	if c.rule.log != audited {
		return nil
	}
	if err := g.cfg.Audit.Ready(); err != nil {
		g.cfg.Refused(codes.Unavailable)
		return wire.Refuse(codes.Unavailable, wire.ReasonUnwritten, "%v: nothing is changed until it can", err)
	}
	return nil
}

// ServerOptions are the interceptors; Admit is to be called from the server's tap.
func (g *Gate) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(g.Unary), grpc.ChainStreamInterceptor(g.Stream)}
}

// Unary is the interceptor of calls with one answer.
func (g *Gate) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c, is := ctx.Value(callKey{}).(*call)
	if !is {
		return nil, notAdmitted(info.FullMethod)
	}
	if err := g.belongs(c, req); err != nil {
		g.refused(c, req, err)
		return nil, err
	}
	if err := g.ready(c); err != nil {
		return nil, err
	}
	response, err := handle(ctx, req)
	g.done(c, req, response, cmp.Or(err, c.hidden))
	if err == nil && c.caller.valid != nil {
		err = c.caller.valid() // a request for work waits long enough for its token to be revoked
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// notAdmitted is the answer of a server that was put together without its tap.
func notAdmitted(method string) error {
	return status.Errorf(codes.Internal, "%s was not admitted: the server lacks its tap", method)
}

// verb is a method in short: JobService.CancelJob.
func verb(method string) string {
	service, name := path.Split(strings.TrimPrefix(method, "/"))
	service = strings.TrimSuffix(service, "/")
	return service[strings.LastIndexByte(service, '.')+1:] + "." + name
}

func roleNames(roles []access.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// address is the peer's, or "unix" for a socket of this machine.
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
