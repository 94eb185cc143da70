package tracker_test

import (
	"crypto/tls"
	"crypto/x509"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// TestPeopleSignInOverTLS checks that a session's cookie is limited to this host and never sent in the clear.
func TestPeopleSignInOverTLS(t *testing.T) {
	c := newClosed(t, true)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must[[]byte](t)(os.ReadFile(c.path("ca.crt")))) {
		t.Fatal("no authority")
	}
	v := c.visitor()
	v.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	site := "https://localhost:" + c.web[strings.LastIndex(c.web, ":")+1:]
	v.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	get := func(target string) (code int, text string) {
		t.Helper()
		w, err := v.client.Get(site + target)
		c.check(err)
		defer w.Body.Close()
		return w.StatusCode, string(must[[]byte](t)(io.ReadAll(w.Body)))
	}
	_, form := get("/signin")
	found := hidden.FindStringSubmatch(form)
	if found == nil {
		t.Fatalf("there is no form:\n%s", form)
	}
	w, err := v.client.PostForm(site+"/signin", url.Values{
		"form_token": {html.UnescapeString(found[1])}, "token": {c.tokens["alice"]}, "next": {"/jobs"},
	})
	c.check(err)
	defer w.Body.Close()
	if w.StatusCode != http.StatusSeeOther || len(w.Cookies()) != 1 {
		t.Fatalf("signing in is answered with %d and %d cookies", w.StatusCode, len(w.Cookies()))
	}
	got := w.Cookies()[0]
	if got.Name != "__Host-tilth_session" || !got.Secure || !got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Path != "/" || got.Domain != "" {
		t.Errorf("the cookie is %v", got)
	}
	if code, text := get("/jobs"); code != http.StatusOK || !strings.Contains(text, "alice, client") {
		t.Errorf("signed in, the page is %d\n%s", code, text)
	}
	// The cookie name without TLS, which another host's page could set, must not work.
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, site+"/jobs", nil))
	r.Header.Set("Cookie", "tilth_session="+got.Value)
	bare := &http.Client{Transport: v.client.Transport}
	refused, err := bare.Do(r)
	c.check(err)
	defer refused.Body.Close()
	if refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("a cookie without the prefix is answered with %d", refused.StatusCode)
	}
}
