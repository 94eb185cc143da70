package authz

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
	"github.com/tilth-dev/tilth/internal/wire"
)

// caller is the authenticated caller, and its address.
type caller struct {
	access.Identity
	proved bool
	from   string
	// valid returns an error once the credentials are no longer valid: a token may be revoked during a stream.
	valid func() error
	// session is the key of the browser session that identifies the caller; empty = none.
	session string
	// token is the caller's token; empty = a certificate.
	token string
}

// proof contains the credentials of a call.
type proof struct {
	// authorization has the values of the Authorization header.
	authorization []string
	// certificate is the peer's certificate, verified by the handshake; nil = none.
	certificate *x509.Certificate
	// waits allows waiting for the issuer's keys. The reader of a connection must not wait.
	waits bool
}

// identify authenticates the caller. A token takes precedence over a certificate: it is sent on purpose, and an
// invalid one is refused whatever the certificate proves.
func (g *Gate) identify(ctx context.Context, from string, p proof) (caller, error) {
	c := caller{from: from}
	if len(p.authorization) > 0 {
		return g.byHeader(ctx, c, p)
	}
	if p.certificate != nil && g.cfg.Certificates {
		return g.byCertificate(c, p.certificate)
	}
	return c, status.Error(codes.Unauthenticated, g.requiredCredentials())
}

// requiredCredentials describes which credentials the tracker accepts.
func (g *Gate) requiredCredentials() string {
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
		return c, status.Error(codes.Unauthenticated, "this tracker takes no tokens: "+g.requiredCredentials())
	}
	scheme, text, is := strings.Cut(p.authorization[0], " ")
	if len(p.authorization) != 1 || !is || !strings.EqualFold(scheme, "bearer") {
		return c, status.Error(codes.Unauthenticated, "the authorization is not one bearer token")
	}
	if g.cfg.OIDC == nil || g.cfg.Tokens != nil && access.IsToken(text) {
		return g.byToken(c, text)
	}
	if p.waits {
		return g.byIssuer(c, text, func() (*oidc.Token, error) { return g.cfg.OIDC.Verify(ctx, text, g.cfg.Now()) })
	}
	return g.byIssuer(c, text, func() (*oidc.Token, error) { return g.cfg.OIDC.VerifyWithoutWaiting(text, g.cfg.Now()) })
}

// byToken identifies the caller by a token of the farm.
func (g *Gate) byToken(c caller, text string) (caller, error) {
	t, err := g.cfg.Tokens.Get().Find(text, g.cfg.Now())
	if err != nil {
		return c, badToken(err)
	}
	c.Identity, c.proved, c.token = access.Identity{Name: t.Name, Role: t.Role, Proof: "token " + t.ID}, true, text
	c.valid = func() error {
		if err := g.cfg.Tokens.Get().Valid(t.ID, g.cfg.Now()); err != nil {
			return badToken(err)
		}
		return nil
	}
	return c, nil
}

func badToken(err error) error {
	return status.Errorf(codes.Unauthenticated, "%v: ask an admin for another ('tilth tracker token create')", err)
}

// keysWait is the retry delay for callers whose token's issuer keys are being fetched.
const keysWait = 250 * time.Millisecond

// byIssuer identifies the caller by a token of the issuer. Checking a signature is expensive, so an address with too
// many unauthenticated calls has to wait with a new token.
func (g *Gate) byIssuer(c caller, text string, verify func() (*oidc.Token, error)) (caller, error) {
	if wait := g.unauthenticatedWait(c.from); wait > 0 && !g.cfg.OIDC.IsCached(text) {
		return c, tooOften(hostOf(c.from), "with tokens", wait)
	}
	t, err := verify()
	switch {
	case errors.Is(err, oidc.ErrKeysPending):
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
		return c, status.Error(codes.Unauthenticated, "the certificate has no role (an organisation such as tilth:agent): "+g.requiredCredentials())
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

// verifiedCertificate returns the peer's certificate if the handshake verified one; otherwise nil.
func verifiedCertificate(info credentials.AuthInfo) *x509.Certificate {
	t, _ := info.(credentials.TLSInfo)
	return verified(t.State.VerifiedChains)
}
