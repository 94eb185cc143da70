package authz

import (
	"cmp"
	"context"
	"crypto/x509"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
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
