package authorisation

import (
	"crypto/x509"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/internal/wire"
)

// HTTP lets those through who may read: with a bearer token, a token as the password of basic authentication (which
// browsers ask for), or a certificate. Paths that are public are for everybody. The request's context says who asks.
func (g *Gate) HTTP(next http.Handler, public ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		caller, err := g.admitPage(r, public)
		if err != nil {
			RefusePage(w, err)
			return
		}
		if caller.proved {
			r = r.WithContext(access.With(r.Context(), caller.Identity))
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Gate) admitPage(r *http.Request, public []string) (caller, error) {
	if g.open() || slices.Contains(public, r.URL.Path) {
		return caller{}, nil
	}
	by, err := g.identify(r.RemoteAddr, pageProof(r))
	c := &call{verb: r.Method + " " + r.URL.Path, began: g.cfg.Now(), caller: by}
	if err == nil && !slices.Contains(readers, by.Role) {
		err = status.Errorf(codes.PermissionDenied, "%s has the role %s, which may not see this page: that is for %s",
			by.Name, by.Role, roleNames(readers))
	}
	if often := g.frequent(c); often != nil && (err == nil || !by.proved) {
		err = often
	}
	if err != nil {
		g.refused(c, nil, err)
	}
	return by, err
}

func pageProof(r *http.Request) proof {
	p := proof{authorization: r.Header.Values("Authorization")}
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

// RefusePage answers a request for a page with a status.
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
