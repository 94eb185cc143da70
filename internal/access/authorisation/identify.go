package authorisation

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/access/tokens"
	"github.com/tilth-dev/tilth/internal/wire"
)

// caller is who calls, as far as it is proved, and from where.
type caller struct {
	access.Identity
	proved bool
	from   string
	// valid says whether the proof still holds: a token may be revoked while a stream lasts.
	valid func() error
	// session is the key of the browser's session that proves who calls; empty = something else does.
	session string
	// token is what proved it; empty = a certificate did.
	token string
}

// proof is what a call comes with.
type proof struct {
	// authorization has the values of that header.
	authorization []string
	// certificate is the peer's, which the handshake has verified; nil = none.
	certificate *x509.Certificate
	// waits says that the issuer's keys may be waited for: whoever reads from a connection must not.
	waits bool
}

// identify says who calls. A token decides when there is one: it is given on purpose, and a wrong one is refused
// whatever the certificate says.
func (g *Gate) identify(ctx context.Context, from string, p proof) (caller, error) {
	c := caller{from: from}
	if len(p.authorization) > 0 {
		return g.byHeader(ctx, c, p)
	}
	if p.certificate != nil && g.cfg.Certificates {
		return g.byCertificate(c, p.certificate)
	}
	return c, status.Error(codes.Unauthenticated, g.wanted())
}

// wanted tells who came with nothing what to come with.
func (g *Gate) wanted() string {
	switch {
	case !g.takesTokens():
		return "this tracker wants a client certificate: name one with --tls-cert and --tls-key"
	case g.cfg.Certificates:
		return "this tracker wants a token or a client certificate: name one with --token-file, or --tls-cert and --tls-key"
	}
	return "this tracker wants a token: name its file with --token-file"
}

func (g *Gate) byHeader(ctx context.Context, c caller, p proof) (caller, error) {
	if !g.takesTokens() {
		return c, status.Error(codes.Unauthenticated, "this tracker takes no tokens: "+g.wanted())
	}
	scheme, text, is := strings.Cut(p.authorization[0], " ")
	if len(p.authorization) != 1 || !is || !strings.EqualFold(scheme, "bearer") {
		return c, status.Error(codes.Unauthenticated, "the authorization is not one bearer token")
	}
	if g.cfg.OIDC == nil || g.cfg.Tokens != nil && tokens.Looks(text) {
		return g.byToken(c, text)
	}
	if p.waits {
		return g.byIssuer(c, text, func() (*oidc.Token, error) { return g.cfg.OIDC.Verify(ctx, text, g.cfg.Now()) })
	}
	return g.byIssuer(c, text, func() (*oidc.Token, error) { return g.cfg.OIDC.VerifyNow(text, g.cfg.Now()) })
}

// byToken says whose a token of the farm's own is.
func (g *Gate) byToken(c caller, text string) (caller, error) {
	t, err := g.cfg.Tokens.Set().Find(text, g.cfg.Now())
	if err != nil {
		return c, badToken(err)
	}
	c.Identity, c.proved, c.token = access.Identity{Name: t.Name, Role: t.Role, Proof: "token " + t.ID}, true, text
	c.valid = func() error {
		if err := g.cfg.Tokens.Set().Valid(t.ID, g.cfg.Now()); err != nil {
			return badToken(err)
		}
		return nil
	}
	return c, nil
}

func badToken(err error) error {
	return status.Errorf(codes.Unauthenticated, "%v: ask an admin for another ('tilth tracker token create')", err)
}

// keysWait is after how long a call is to be made again by whose token the issuer's keys are being read.
const keysWait = 250 * time.Millisecond

// putOff says whether a call is to be made again for that: it is not refused yet.
func putOff(err error) bool {
	_, later := wire.RetryAfter(err)
	return later && wire.Reason(err) == wire.ReasonIssuer
}

// byIssuer says whose a token of the issuer is. Checking a signature takes time, so an address from which there were
// too many calls that prove nothing has to wait with one that is new.
func (g *Gate) byIssuer(c caller, text string, verify func() (*oidc.Token, error)) (caller, error) {
	if wait := g.strangerWaits(c.from); wait > 0 && !g.cfg.OIDC.Remembers(text) {
		return c, tooOften(hostOf(c.from), "with tokens", wait)
	}
	t, err := verify()
	switch {
	case errors.Is(err, oidc.ErrKeysComing):
		return c, wire.RefuseUntil(keysWait, codes.Unavailable, wire.ReasonIssuer, "%v", err)
	case errors.Is(err, oidc.ErrKeysUnavailable):
		return c, wire.Refuse(codes.Unavailable, wire.ReasonIssuer, "%v", err)
	case errors.Is(err, oidc.ErrNoRole):
		return c, status.Error(codes.PermissionDenied, err.Error())
	case err != nil:
		return c, status.Error(codes.Unauthenticated, err.Error())
	}
	c.Identity, c.proved, c.token = t.Identity, true, text
	c.valid = func() error {
		if err := g.cfg.OIDC.Valid(t, g.cfg.Now()); err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		return nil
	}
	return c, nil
}

func (g *Gate) byCertificate(c caller, cert *x509.Certificate) (caller, error) {
	id, is, err := certs.Identity(cert, g.cfg.Now())
	if err != nil {
		return c, status.Errorf(codes.Unauthenticated, "%v: ask an admin for another ('tilth tracker certs')", err)
	}
	if !is {
		return c, status.Error(codes.Unauthenticated, "the certificate tells no role (an organisation such as tilth:agent): "+g.wanted())
	}
	c.Identity, c.proved = id, true
	c.valid = func() error {
		if g.cfg.Now().After(cert.NotAfter) {
			return status.Error(codes.Unauthenticated, "the certificate has expired: ask an admin for another ('tilth tracker certs')")
		}
		return nil
	}
	return c, nil
}

// verifiedCertificate is the peer's, if its handshake has verified one.
func verifiedCertificate(info credentials.AuthInfo) *x509.Certificate {
	t, is := info.(credentials.TLSInfo)
	if !is {
		return nil
	}
	return verified(t.State.VerifiedChains)
}
