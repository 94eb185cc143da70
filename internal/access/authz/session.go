package authz

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// SignInPath is where browsers without credentials are redirected to. It must be public.
const SignInPath = "/signin"

// pagePolicy is the Content-Security-Policy of pages: resources come from the tracker only, and inline content is
// refused.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pageKey is the context key of the caller of a page.
type pageKey struct{}

// HTTP requires credentials with the right to read: a bearer token, a token as the password of basic authentication,
// the cookie of a session (see SignIn), or a certificate. Paths in public are served to everybody. Cross-site requests
// that change state are refused. The caller is stored in the request's context.
func (g *Gate) HTTP(next http.Handler, public ...string) http.Handler {
	sameSite := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if err := cmp.Or(sameSite.Check(r), g.checkHost(r, public)); err != nil {
			RefusePage(w, status.Errorf(codes.PermissionDenied, "%v", err))
			return
		}
		caller, err := g.admitPage(r, public)
		if err != nil {
			if g.needsSignInForm(r, err) {
				http.Redirect(w, r, SignInPath+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
				return
			}
			RefusePage(w, err)
			return
		}
		if caller.proved {
			r = r.WithContext(context.WithValue(access.With(r.Context(), caller.Identity), pageKey{}, caller))
		}
		next.ServeHTTP(w, r)
	})
}

// ForwardedAuthorization returns the Authorization header that identifies the caller of a page to another tracker of
// the farm. It is empty on an open tracker. It fails with UNAUTHENTICATED for a caller identified by a certificate,
// which only its holder can present.
func (g *Gate) ForwardedAuthorization(ctx context.Context) (authorization string, err error) {
	by, is := ctx.Value(pageKey{}).(caller)
	switch {
	case g.open() || !is:
		return "", nil
	case by.token == "":
		return "", status.Error(codes.Unauthenticated, "certificate credentials cannot be forwarded: use a token, or the command line")
	}
	return "Bearer " + by.token, nil
}

// needsSignInForm reports whether the request comes from a browser without credentials that can sign in by a form.
func (g *Gate) needsSignInForm(r *http.Request, err error) bool {
	return status.Code(err) == codes.Unauthenticated && g.takesTokens() && r.Method == http.MethodGet &&
		r.Header.Get("Authorization") == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func (g *Gate) admitPage(r *http.Request, public []string) (caller, error) {
	if g.open() || slices.Contains(public, r.URL.Path) {
		return caller{}, nil
	}
	by, is := g.bySession(r)
	var err error
	if !is {
		by, err = g.identify(r.Context(), r.RemoteAddr, pageProof(r))
	}
	c := &call{verb: r.Method + " " + r.URL.Path, began: g.cfg.Now(), caller: by}
	if err == nil {
		err = mayRead(by)
	}
	if often := g.checkRate(c); often != nil && (err == nil || !by.proved) {
		err = often
	}
	if err != nil && !g.needsSignInForm(r, err) { // a redirect to the form is not a refusal yet
		g.refused(c, nil, err)
	}
	return by, err
}

func mayRead(by caller) error {
	readers := []access.Role{access.ReadOnly, access.Client, access.Admin}
	if slices.Contains(readers, by.Role) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s has the role %s, which may not see this page: that is for %s",
		by.Name, by.Role, roleNames(readers))
}

func pageProof(r *http.Request) proof {
	p := proof{authorization: r.Header.Values("Authorization"), waits: true}
	if _, password, is := r.BasicAuth(); is && len(p.authorization) == 1 {
		p.authorization = []string{"Bearer " + password}
	}
	if r.TLS != nil {
		p.certificate = verified(r.TLS.VerifiedChains)
	}
	return p
}

func verified(chains [][]*x509.Certificate) *x509.Certificate {
	if len(chains) == 0 {
		return nil
	}
	return chains[0][0]
}

// RefusePage answers a request for a page with the error's status.
func RefusePage(w http.ResponseWriter, err error) {
	code := http.StatusForbidden
	if wait, is := wire.RetryAfter(err); is {
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	switch status.Code(err) {
	case codes.Unavailable:
		code = http.StatusServiceUnavailable
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="tilth: any name, and a token as the password", charset="UTF-8"`)
	}
	http.Error(w, strings.TrimSpace(status.Convert(err).Message()), code)
}

// Bounds on browser sessions. Sessions are in memory only: users sign in again after a restart.
const (
	sessionLifetime    = 12 * time.Hour
	maxSessions        = 1024
	sessionsOfIdentity = 16
)

// attemptRate limits the attempts to sign in from one address, including this machine's.
var attemptRate = rate{perSecond: 1, burst: 20}

// notedCall is the rule of signing in and out.
var notedCall = &tilthv1.Call{Audit: tilthv1.Audit_AUDIT_NOTED}

// sessionTable has the sessions of signed-in browsers, by the hash of the secret in their cookie.
type sessionTable struct {
	mu    sync.Mutex
	byKey map[string]session
}

// session is a signed-in browser.
type session struct {
	access.Identity
	began time.Time
	// token is the token used to sign in, stored only if the gate passes calls on. valid reports whether that token is
	// still valid.
	token string
	valid func() error
}

// add stores a session. If there are too many, it evicts the oldest session of the identity, or the oldest of all.
func (s *sessionTable) add(key string, one session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[string]session{}
	}
	own, oldest, oldestOwn := 0, "", ""
	for k, other := range s.byKey {
		if oldest == "" || other.began.Before(s.byKey[oldest].began) {
			oldest = k
		}
		if other.Name != one.Name {
			continue
		}
		if own++; oldestOwn == "" || other.began.Before(s.byKey[oldestOwn].began) {
			oldestOwn = k
		}
	}
	if own >= sessionsOfIdentity {
		delete(s.byKey, oldestOwn)
	} else if len(s.byKey) >= maxSessions {
		delete(s.byKey, oldest)
	}
	s.byKey[key] = one
}

// find returns the session if it is valid at the given time, and deletes it if it has expired.
func (s *sessionTable) find(key string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, is := s.byKey[key]
	if is && (now.Sub(one.began) >= sessionLifetime || one.valid() != nil) {
		delete(s.byKey, key)
		return session{}, false
	}
	return one, is
}

func (s *sessionTable) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}

// cookieName returns the name of the session cookie. Under TLS its prefix restricts the cookie to this host.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-tilth_session"
	}
	return "tilth_session"
}

func sessionKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// bySession identifies the caller by a session cookie. Credentials in headers are sent on purpose and take precedence.
func (g *Gate) bySession(r *http.Request) (caller, bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil || !g.takesTokens() || r.Header.Get("Authorization") != "" {
		return caller{}, false
	}
	key := sessionKey(cookie.Value)
	one, is := g.sessions.find(key, g.cfg.Now())
	if !is {
		return caller{}, false
	}
	return caller{Identity: one.Identity, proved: true, from: r.RemoteAddr, session: key, token: one.token, valid: func() error {
		if _, is := g.sessions.find(key, g.cfg.Now()); !is {
			return status.Error(codes.Unauthenticated, "the session has ended: sign in again")
		}
		return nil
	}}, true
}

// SignsIn reports whether users sign in with tokens.
func (g *Gate) SignsIn() bool { return g.takesTokens() }

// Issuer returns the URL of the accepted issuer; empty = none.
func (g *Gate) Issuer() string {
	if g.cfg.OIDC == nil {
		return ""
	}
	return g.cfg.OIDC.Issuer()
}

// SignIn starts a session for the owner of a token and sets its cookie. Every attempt is written to the audit log. The
// error is a status: UNAUTHENTICATED for an invalid token, PERMISSION_DENIED for a role that may not read pages,
// RESOURCE_EXHAUSTED after too many attempts.
func (g *Gate) SignIn(w http.ResponseWriter, r *http.Request, token string) error {
	c := &call{verb: "Page.SignIn", rule: notedCall, began: g.cfg.Now(), caller: caller{from: r.RemoteAddr}}
	var err error
	if wait := g.attempts.take(bucketKey{who: hostOf(r.RemoteAddr)}, g.cfg.Now(), attemptRate, nil); wait > 0 {
		err = wire.RefuseUntil(wait, codes.ResourceExhausted, wire.ReasonRate, "there were too many attempts to sign in: try again in a few seconds")
	} else if c.caller, err = g.identify(r.Context(), r.RemoteAddr, proof{authorization: []string{"Bearer " + strings.TrimSpace(token)}, waits: true}); err == nil {
		err = mayRead(c.caller)
	}
	if err != nil {
		if !c.caller.proved {
			g.takeCall(c) // counts as an unauthenticated call of its address
		}
		g.refused(c, nil, err)
		return err
	}
	secret := rand.Text() + rand.Text()
	one := session{Identity: c.caller.Identity, began: g.cfg.Now(), valid: c.caller.valid}
	if g.cfg.PassesOn {
		one.token = c.caller.token
	}
	g.sessions.add(sessionKey(secret), one)
	http.SetCookie(w, g.cookie(r, secret, int(sessionLifetime.Seconds())))
	g.done(c, nil, nil, nil)
	return nil
}

// SignOut ends the session of a request, if any.
func (g *Gate) SignOut(w http.ResponseWriter, r *http.Request) {
	if by, is := r.Context().Value(pageKey{}).(caller); is && by.session != "" {
		g.sessions.remove(by.session)
		g.done(&call{verb: "Page.SignOut", rule: notedCall, began: g.cfg.Now(), caller: by}, nil, nil, nil)
	}
	http.SetCookie(w, g.cookie(r, "", -1))
}

func (g *Gate) cookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}

// Valid returns an error once the credentials of a page's request are no longer valid. Long-lived pages call it from
// time to time.
func (g *Gate) Valid(r *http.Request) error {
	if by, is := r.Context().Value(pageKey{}).(caller); is && by.valid != nil {
		return by.valid()
	}
	return nil
}

// InSession reports whether a request belongs to a browser session.
func (g *Gate) InSession(r *http.Request) bool {
	by, _ := r.Context().Value(pageKey{}).(caller)
	return by.session != ""
}

// FormToken returns the CSRF token for the forms of a page. It is valid until the session ends or, on an open tracker,
// until the process ends.
func (g *Gate) FormToken(r *http.Request) string {
	by, _ := r.Context().Value(pageKey{}).(caller)
	mac := hmac.New(sha256.New, g.formKey)
	mac.Write([]byte(by.session + "\x00" + by.Name))
	return hex.EncodeToString(mac.Sum(nil))
}

// CheckForm refuses a form without the right CSRF token.
func (g *Gate) CheckForm(r *http.Request, token string) error {
	if !hmac.Equal([]byte(token), []byte(g.FormToken(r))) {
		return status.Error(codes.PermissionDenied, "the form is of another session, or of before the tracker was started: load the page again")
	}
	return nil
}

// CheckCall refuses a JSON call that changes state if it uses a browser's session, which is reserved for the forms of
// pages.
func (g *Gate) CheckCall(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && g.InSession(r) {
		return status.Error(codes.PermissionDenied, "a session is for pages: make calls with a token in the Authorization header")
	}
	return nil
}

// checkHost refuses requests to an open tracker unless their Host is an address, localhost or a name without a dot.
// Another site's name could resolve to this machine (DNS rebinding), and its page would read and change everything.
func (g *Gate) checkHost(r *http.Request, public []string) error {
	host := hostname(r.Host)
	if !g.open() || !strings.Contains(host, ".") || net.ParseIP(host) != nil || slices.Contains(public, r.URL.Path) {
		return nil
	}
	return fmt.Errorf("without authentication, the tracker serves no page under the name %.100q: use its address, localhost, or the command line", host)
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// HasRole reports whether the role of a page's caller may call a method.
func (g *Gate) HasRole(r *http.Request, method string) bool {
	by, _ := r.Context().Value(pageKey{}).(caller)
	return g.open() || slices.Contains(rolesOf(wire.Call(method)), by.Role)
}

// May reports whether the caller of a page may call a method on a job of owner, as its owner or as an admin.
func (g *Gate) May(r *http.Request, method, owner string) bool {
	by, _ := r.Context().Value(pageKey{}).(caller)
	own := by.Role == access.Admin || by.Name == owner
	return g.open() || g.HasRole(r, method) && (own || wire.Call(method).GetOwn() != tilthv1.Ownership_OWNERSHIP_JOB)
}
