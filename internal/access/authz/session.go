package authz

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
